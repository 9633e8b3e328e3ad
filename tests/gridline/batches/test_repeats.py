"""Creates that are sent again, with a key and without."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from gridline.batches.intake import Created
from gridline.batches.repeats import FORGET_ROWS_MAX, Sent, forget
from gridline.batches.requests import CreateRequest
from gridline.batches.tables import Batch, IdempotencyKey, RecentCreate
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import Conflict, LimitExceeded, NotFound
from gridline.files import keeping
from tests.gridline.batches.bench import Bench
from tests.racing import together

FIRST = Sent(token_id="tok_1", user_agent="OpenAI/Python 3.57.0")
AGAIN = replace(FIRST, retry=True)


def wanted(bench: Bench, **metadata: str) -> CreateRequest:
    """A create of a file of its own."""
    return CreateRequest(bench.file(), "/v1/chat/completions", "24h", metadata, None)


def raise_limit(bench: Bench, most: int = 1_000) -> None:
    """Let the account have many open batches."""
    with unit_of_work() as work:
        work.session.get_one(Account, bench.account_id).open_batches_max = most


def shown(created: Created) -> tuple[str, bool]:
    """The batch's id, and whether it was there before."""
    return created.batch.id, created.replayed


def test_a_retry_without_a_key_finds_its_batch(bench: Bench) -> None:
    """Same token, User-Agent and body, and a retry count: the batch of the first attempt, and nothing new."""
    request = wanted(bench)
    first = bench.sent(request, FIRST)
    assert not first.replayed
    assert shown(bench.sent(request, AGAIN)) == (first.batch.id, True)
    with unit_of_work() as work:
        assert work.session.scalar(select(func.count()).select_from(Batch)) == 1
        assert work.session.get_one(Account, bench.account_id).open_batches == 1


def test_two_first_attempts_are_two_batches(bench: Bench) -> None:
    """Whoever asks twice for the same work gets it twice, and a retry then finds the later one."""
    request = wanted(bench)
    first, second = bench.sent(request, FIRST), bench.sent(request, FIRST)
    assert first.batch.id != second.batch.id
    assert bench.sent(request, AGAIN).batch.id == second.batch.id


@pytest.mark.parametrize("other", [{"token_id": "tok_2"}, {"user_agent": "curl/8"}])
def test_another_sender_is_no_retry(bench: Bench, other: dict[str, Any]) -> None:
    """Another token or another User-Agent is another program, whatever it counts."""
    request = wanted(bench)
    first = bench.sent(request, FIRST)
    assert bench.sent(request, replace(AGAIN, **other)).batch.id != first.batch.id


def test_another_body_is_no_retry(bench: Bench) -> None:
    """A retry count with another body makes a batch."""
    request = wanted(bench, a="1")
    first = bench.sent(request, FIRST)
    assert bench.sent(replace(request, metadata={"a": "2"}), AGAIN).batch.id != first.batch.id


def test_another_account_is_no_retry(bench: Bench) -> None:
    """What one account sent is not there for another."""
    request = wanted(bench)
    first = bench.sent(request, FIRST)
    with unit_of_work() as work:
        other = replace(bench, account_id=accounts.open_account(work, "stranger").id)
    with pytest.raises(NotFound):
        other.sent(request, AGAIN)
    assert bench.sent(request, AGAIN).batch.id == first.batch.id


def test_a_retry_is_one_for_30_minutes(bench: Bench) -> None:
    """Under 30 minutes after the first attempt it is found, from then on a new batch is made."""
    raise_limit(bench)
    request = wanted(bench)
    first = bench.sent(request, FIRST)
    bench.clock.advance(minutes=29, seconds=59)
    assert bench.sent(request, AGAIN).batch.id == first.batch.id
    bench.clock.advance(seconds=1)
    late = bench.sent(request, AGAIN)
    assert not late.replayed
    assert shown(bench.sent(request, AGAIN)) == (late.batch.id, True)


def test_a_retry_of_what_never_arrived_makes_the_batch(bench: Bench) -> None:
    """The first attempt was lost on its way: the second makes the batch, and the third finds it."""
    request = wanted(bench)
    made = bench.sent(request, AGAIN)
    assert not made.replayed
    assert shown(bench.sent(request, AGAIN)) == (made.batch.id, True)


def test_a_retry_of_a_refusal_is_made_now(bench: Bench) -> None:
    """A create that was refused left nothing behind, so its retry makes the batch once there is room."""
    raise_limit(bench, 0)
    request = wanted(bench)
    for sent in (FIRST, AGAIN, Sent(key="k")):
        with pytest.raises(LimitExceeded):
            bench.sent(request, sent)
    raise_limit(bench)
    assert not bench.sent(request, AGAIN).replayed
    assert not bench.sent(request, Sent(key="k")).replayed


@pytest.mark.parametrize(("sent", "again"), [(FIRST, AGAIN), (Sent(key="k"), Sent(key="k"))])
def test_the_batch_that_took_the_last_slot_answers_its_retry(bench: Bench, sent: Sent, again: Sent) -> None:
    """A repetition is found before the open limit, and before the input file, which may be gone by then."""
    raise_limit(bench, 1)
    request = wanted(bench)
    first = bench.sent(request, sent)
    with unit_of_work() as work:
        work.session.get_one(Batch, first.batch.id).ended_at = work.now
        account = work.session.get_one(Account, bench.account_id)
        account.files_count, account.files_bytes = 1, 1
    with unit_of_work() as work:
        keeping.delete(work, account_id=bench.account_id, file_id=request.input_file_id, actor="t")
    assert bench.sent(request, again).batch.id == first.batch.id


def test_a_key_rules_over_the_look(bench: Bench) -> None:
    """A create with a key is found by its key only, and leaves no look behind."""
    request = wanted(bench)
    bench.sent(request, replace(FIRST, key="k"))
    assert not bench.sent(request, AGAIN).replayed
    with unit_of_work() as work:
        assert work.session.scalar(select(func.count()).select_from(RecentCreate)) == 1


def test_a_key_survives_a_change_of_token(bench: Bench) -> None:
    """Keys are the account's: the retry may come with a new token and from another program."""
    request = wanted(bench)
    first = bench.sent(request, replace(FIRST, key="k"))
    assert shown(bench.sent(request, Sent("k", "tok_2", "curl/8"))) == (first.batch.id, True)


def test_order_of_metadata_is_not_another_body(bench: Bench) -> None:
    """Bodies are compared by what they ask for."""
    request = wanted(bench, a="1", b="2")
    turned = replace(request, metadata={"b": "2", "a": "1"})
    assert list(request.metadata or ()) != list(turned.metadata or ())
    assert bench.sent(request, Sent(key="k")).batch.id == bench.sent(turned, Sent(key="k")).batch.id
    assert bench.sent(request, FIRST).batch.id == bench.sent(turned, AGAIN).batch.id


@pytest.mark.parametrize(
    "other", [{"endpoint": "/v1/embeddings"}, {"completion_window": "72h"}, {"metadata": None},
              {"output_expires_after_seconds": 3_600}]
)  # fmt: skip
def test_every_field_counts_for_a_key(bench: Bench, other: dict[str, Any]) -> None:
    """Whatever differs in the body, the key is taken."""
    request = wanted(bench)
    bench.sent(request, Sent(key="k"))
    with pytest.raises(Conflict) as caught:
        bench.sent(replace(request, **other), Sent(key="k"))
    assert (caught.value.code, caught.value.param) == ("idempotency_conflict", "Idempotency-Key")


def test_twenty_at_once_with_one_key_are_one_batch(bench: Bench) -> None:
    """Whoever comes while the first is still at it waits and gets the same batch."""
    request = wanted(bench)
    answers = together(20, lambda: bench.sent(request, Sent(key="k")))
    assert {one.batch.id for one in answers if isinstance(one, Created)} == {bench_batch_id(bench)}
    assert [one.replayed for one in answers if isinstance(one, Created)].count(False) == 1
    assert len(answers) == 20


def test_a_retry_waits_for_its_first_attempt(bench: Bench) -> None:
    """Ten retries while the first attempt may still be in its transaction: one batch."""
    request = wanted(bench)
    answers = together(10, lambda: bench.sent(request, AGAIN))
    assert {one.batch.id for one in answers if isinstance(one, Created)} == {bench_batch_id(bench)}
    assert all(isinstance(one, Created) for one in answers)


def bench_batch_id(bench: Bench) -> str:
    """The one batch there is."""
    with unit_of_work() as work:
        return work.session.scalars(select(Batch.id)).one()


def test_old_rows_are_forgotten(bench: Bench) -> None:
    """Looks are kept for an hour and keys for 48 hours; what may still be asked for stays."""
    raise_limit(bench)
    request = wanted(bench)
    bench.sent(request, FIRST)
    bench.sent(request, Sent(key="k"))
    kept = []
    for minutes in (60, 1, 46 * 60 + 59, 1):
        bench.clock.advance(minutes=minutes)
        with unit_of_work() as work:
            forget(work)
        with unit_of_work() as work:
            kept.append(
                tuple(
                    work.session.scalar(select(func.count()).select_from(one))
                    for one in (RecentCreate, IdempotencyKey)
                )
            )
    assert kept == [(1, 1), (0, 1), (0, 1), (0, 0)]


@pytest.mark.thorough
def test_forgetting_takes_some_rows_at_a_time(bench: Bench) -> None:
    """However many rows are old, a pass deletes a bounded number of them, the oldest first."""
    batch = bench.create()
    old = bench.clock.now()
    with unit_of_work() as work:
        work.session.add_all(
            RecentCreate(account_id=batch.account_id, fingerprint=str(number), batch_id=batch.id,
                         created_at=old - timedelta(hours=2, seconds=number))
            for number in range(FORGET_ROWS_MAX + 1)
        )  # fmt: skip
    left = []
    for _ in range(3):
        with unit_of_work() as work:
            left.append(forget(work))
    assert left == [FORGET_ROWS_MAX, 1, 0]
