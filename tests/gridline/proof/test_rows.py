import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, text

from gridline.db.work import unit_of_work
from gridline.ledger import proving
from gridline.proof import rows
from gridline.proof.promises import EVERY, GUARDS
from tests.gridline.proof.sound import SoundBench

pytestmark = pytest.mark.thorough

COMPLETED = "WHERE status = 'completed'"
BREAKS = {
    "batch {} is {} and its hold is not resolved": "DELETE FROM resolutions",
    "batch {} is {} and its hold is resolved already": f"UPDATE batches SET ended_at = NULL {COMPLETED}",
    "batch {} is {} with {} results and was never settled": "DELETE FROM resolutions",
    "batch {} belongs to account {}, its hold to account {}": (
        "UPDATE holds SET account_id = (SELECT id FROM accounts WHERE name = 'stranger')"
    ),
    "transaction {} of batch {} is a second {}": (
        "INSERT INTO transactions (id, account_id, kind, batch_id, at, actor, why) "
        "SELECT 'txn_second', account_id, 'hold', id, created_at, 'x', 'x' FROM batches LIMIT 1"
    ),
    "batch {} failed and was charged {} nano-credits": f"UPDATE batches SET status = 'failed' {COMPLETED}",
    "batch {} was charged for {} lines, {} and {} tokens, and shows {} lines, {} and {} tokens": (
        f"UPDATE batches SET input_tokens = 1 {COMPLETED}"
    ),
    "batch {} was charged for {} lines, its usage facts have {}": "DELETE FROM usage_facts",
    "batch {} went from {} to {}, which no batch may": (
        "INSERT INTO batch_events (batch_id, account_id, at, kind, actor, details) "
        f"SELECT id, account_id, created_at, 'in_progress', 'x', '{{}}' FROM batches {COMPLETED}"
    ),
    "batch {} is {}, its last event says {}": f"UPDATE batches SET status = 'expired' {COMPLETED}",
    "batch {} is completed and its file was never read": f"UPDATE batches SET validated_at = NULL {COMPLETED}",
    "batch {} failed although a line ran": "UPDATE batches SET any_line_ran = true",
    "batch {} is {}, and when it ended is another matter: {}": f"UPDATE batches SET ended_at = NULL {COMPLETED}",
    "account {} counts {} open batches, its rows are {}": "UPDATE accounts SET open_batches = 7",
    "batch {} of window {} expires {} seconds after it was created": (
        "UPDATE batches SET expires_at = expires_at + interval '1 second'"
    ),
    "batch {} is {} without the time at which it became so": f"UPDATE batches SET completed_at = NULL {COMPLETED}",
    "batch {} has {} ends, and it may have one": f"UPDATE batches SET failed_at = ended_at {COMPLETED}",
    "batch {} has times that are out of order": (
        f"UPDATE batches SET in_progress_at = created_at - interval '1 second' {COMPLETED}"
    ),
    "batch {} ended {} with {} requests, and {} of them became something": (
        f"UPDATE batches SET total = total + 1 {COMPLETED}"
    ),
    "batch {} has {} requests, its partitions {}": "UPDATE partitions SET lines = lines + 1",
    "partition {} of batch {} has {} lines, and {} of them are done": "UPDATE partitions SET lines_done = lines + 1",
    "batch {} is {} and shows a file": "UPDATE batches SET error_file_id = input_file_id WHERE status = 'failed'",
    "batch {} is {} with {} lines done and {} not, and its files do not say so": (
        f"UPDATE batches SET output_file_id = NULL {COMPLETED}"
    ),
    "batch {} shows file {}, which is not a result of it": (
        f"UPDATE batches SET output_file_id = input_file_id {COMPLETED}"
    ),
    "file {} is a result that batch {} does not show": f"UPDATE batches SET output_file_id = NULL {COMPLETED}",
    "batch {} has not ended, and its input file {} is deleted": "UPDATE files SET deleted_at = created_at",
    "account {} counts {} files of {} bytes, its rows are {} of {}": "UPDATE accounts SET files_bytes = files_bytes + 1",
    "lease {} of batch {} is not given back, and the batch has ended": (
        "UPDATE batches SET ended_at = created_at - interval '1 day' WHERE ended_at IS NULL"
    ),
    "lease {} and its attempt at partition {} of batch {} did not end together": (
        "UPDATE attempts SET ended_at = started_at"
    ),
    "lease {} of batch {} is claimed without an attempt": "DELETE FROM attempts",
    "partition {} of batch {} is running without a lease": "UPDATE leases SET released_at = granted_at",
}
SWITCHED_OFF = (
    (
        "GRANT DELETE ON entries TO gridline_app",
        "REVOKE DELETE ON entries FROM gridline_app",
        "rows of entries can",
    ),
    (
        "ALTER TABLE entries DISABLE TRIGGER add_entry_to_balance",
        "ALTER TABLE entries ENABLE TRIGGER add_entry_to_balance",
        "guard add_entry_to_balance of the books is off",
    ),
)


def proven() -> list[str]:
    with unit_of_work() as work:
        return rows.prove(work) + proving.prove(work)


@contextmanager
def switched_off(owner: Engine, off: str, on: str) -> Iterator[None]:
    """Without one of the database's own guards for a while."""
    with owner.begin() as connection:
        connection.execute(text(off))
    try:
        yield
    finally:
        with owner.begin() as connection:
            connection.execute(text(on))


def test_a_sound_platform_breaks_nothing(sound: SoundBench) -> None:
    """Completed, failed, cancelled and running batches keep every promise."""
    assert proven() == []


@pytest.mark.parametrize("sentence", BREAKS)
def test_each_promise_is_seen_broken(sound: SoundBench, owner: Engine, sentence: str) -> None:
    """A change behind the platform's back is found by the promise it breaks, in a sentence with the row's id."""
    with owner.begin() as connection:
        connection.execute(text(BREAKS[sentence].replace(":", "\\:")))
    told = re.compile(re.escape(sentence).replace(r"\{\}", r"\S.*"))
    assert [one for one in proven() if told.fullmatch(one)]


@pytest.mark.parametrize(("off", "on", "told"), SWITCHED_OFF)
def test_a_guard_that_is_off_is_seen(sound: SoundBench, owner: Engine, off: str, on: str, told: str) -> None:
    """Rights and triggers that keep the books are looked at too: a restore may have left them off."""
    with switched_off(owner, off, on):
        assert [one for one in proven() if told in one]
    assert proven() == []


def test_every_promise_is_tried() -> None:
    """No promise is on the list without a test that breaks it."""
    assert {sentence for sentence, _ in EVERY} - {sentence for sentence, _ in GUARDS} == set(BREAKS)


def test_a_fault_of_many_rows_is_named_a_hundred_times(
    sound: SoundBench, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fault that has hit every row fills no log."""
    monkeypatch.setattr(rows, "NAMED_MAX", 2)
    with owner.begin() as connection:
        connection.execute(text("UPDATE batches SET expires_at = expires_at + interval '1 day'"))
    assert len([one for one in proven() if "of window" in one]) == 2
