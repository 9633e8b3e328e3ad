"""How long files are kept in a dialect that goes by the account's policy."""

from datetime import timedelta

import pytest

from gridline.batches import finishing
from gridline.batches.tables import Batch
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import InvalidRequest
from gridline.files import retention
from gridline.files.tables import File
from tests.dialects import speak
from tests.gridline.batches.bench import Bench

DAY = timedelta(days=1)


@pytest.fixture
def policy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """An account that keeps its files for three days."""
    speak(monkeypatch, "gridport")
    with unit_of_work() as work:
        work.session.get_one(Account, bench.account_id).retention_days = 3
    return bench


def input_of(batch: Batch) -> File:
    """The batch's input."""
    with unit_of_work() as work:
        return work.session.get_one(File, batch.input_file_id)


@pytest.mark.parametrize(("asked", "kept"), [(None, 3 * DAY), (2 * DAY, 2 * DAY), (9 * DAY, 3 * DAY)])
def test_an_input_follows_the_policy(policy: Bench, asked: timedelta | None, kept: timedelta) -> None:
    """As long as the policy says, or sooner if that was asked; never longer."""
    now = policy.clock.now()
    with unit_of_work() as work:
        days = retention.policy(work, policy.account_id)
    seconds = None if asked is None else int(asked.total_seconds())
    assert retention.input_expires_at(now, seconds, days) == now + kept


def test_results_never_outlive_their_input(policy: Bench) -> None:
    """Written a day later, they are kept until the input goes; asked for less, for that."""
    ends = []
    for asked in (None, int((DAY / 4).total_seconds())):
        made = policy.held(lines=(1,))
        with unit_of_work() as work:
            work.session.get_one(Batch, made.id).output_expires_after_seconds = asked
        began = policy.clock.now()
        policy.clock.moment += DAY / 2
        policy.claim(made, 0, lease=f"lease-{made.id}", state="done")
        policy.segment(made, 0, [0], lease=f"lease-{made.id}")
        with unit_of_work() as work:
            work.session.get_one(File, made.input_file_id).expires_at = began + DAY
        assert finishing.finish(made.id, run_over=True) == "completed"
        with unit_of_work() as work:
            batch = work.session.get_one(Batch, made.id)
            ends.append((work.session.get_one(File, batch.output_file_id).expires_at or began) - began)
    assert ends == [DAY, DAY / 2 + DAY / 4]


def test_a_create_whose_input_goes_too_early_is_refused(policy: Bench) -> None:
    """Exactly at the window's end is fine, a second before it is a refusal that says both times and what to do."""
    file, ends = input_of(policy.create()), policy.clock.now() + DAY
    file.expires_at = ends
    retention.keep_for_batch(file, ends, 3 * DAY)
    with pytest.raises(InvalidRequest) as refused:
        retention.keep_for_batch(file, ends + timedelta(seconds=1), 3 * DAY)
    assert file.expires_at == ends
    assert (refused.value.code, refused.value.param) == ("input_expires_too_early", "input_file_id")
    for words in ("Upload it again", "keeps files for 3 days", "write to the operator"):
        assert words in refused.value.message


def test_the_default_dialect_knows_no_policy(bench: Bench) -> None:
    """There the figures that are promised to all hold, whatever the account's number."""
    with unit_of_work() as work:
        work.session.get_one(Account, bench.account_id).retention_days = 1
        assert retention.policy(work, bench.account_id) is None
