"""`gridline ops hold`, `release`, `platform-limit` and `gpu-time`, against a real database."""

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, text

from gridline.cli.main import main
from gridline.db.work import unit_of_work
from tests.gridline.ledger import bench


def run(*arguments: str) -> Result:
    """What a command did."""
    return CliRunner().invoke(main, ["ops", *arguments])


def ok(*arguments: str) -> str:
    """What a command that works prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def batch(database: Engine) -> str:
    """A batch of the account acme."""
    with unit_of_work() as work:
        account = bench.account(work, "acme", credit_nanos=10**9)
        return bench.batch(work, account.id, partitions=1).id


def audit(owner: Engine, action: str) -> list[tuple[str, dict[str, object]]]:
    """Who did it, and the details."""
    with owner.connect() as connection:
        rows = connection.execute(
            text("SELECT actor, details FROM audit WHERE action = :action ORDER BY sequence"),
            {"action": action},
        )
        return [(row.actor, row.details) for row in rows]


def test_a_batch_is_held_and_released(batch: str, owner: Engine) -> None:
    """Each once, however often it is said; the audit has the operator and the note."""
    assert ok("hold", batch, "--note", "A look.") == "held\n"
    assert "held already" in ok("hold", batch, "--note", "Another look.")
    assert ok("release", batch) == "released\n"
    assert "not held" in ok("release", batch)
    ((actor, details),) = audit(owner, "batch.operator_hold")
    assert actor.startswith("operator:")
    assert details == {"batch_id": batch, "note": "A look."}
    assert len(audit(owner, "batch.operator_release")) == 1


def test_a_hold_needs_a_note_and_a_batch(batch: str) -> None:
    """Without a note it is a usage error; an unknown batch is a sentence."""
    assert run("hold", batch).exit_code == 2
    result = run("hold", "batch_nothing", "--note", "x")
    assert result.exit_code == 1
    assert "There is no batch" in result.output


def test_the_platforms_limit_is_shown_set_and_lifted(batch: str, owner: Engine) -> None:
    """Shown without a change and without an audit; set with why; none lifts it."""
    assert ok("platform-limit") == "credits a day\tnone\nused today\t0.000000000\n"
    assert ok("platform-limit", "--credits-per-day", "2.5", "--why", "less").startswith(
        "credits a day\t2.500000000"
    )
    assert ok("platform-limit").startswith("credits a day\t2.500000000")
    assert ok("platform-limit", "--credits-per-day", "none", "--why", "more").startswith(
        "credits a day\tnone"
    )
    assert [details for _, details in audit(owner, "platform.daily_limit")] == [
        {"credits_per_day": "2.500000000", "why": "less"},
        {"credits_per_day": None, "why": "more"},
    ]


@pytest.mark.parametrize("given", [["x", "--why", "y"], ["0.0000000001", "--why", "y"], ["5"]])
def test_a_limit_that_is_none_is_a_usage_error(batch: str, given: list[str]) -> None:
    """No number, a finer one than exists, or no reason: exit status 2 and nothing changed."""
    assert run("platform-limit", "--credits-per-day", *given).exit_code == 2
    assert ok("platform-limit").startswith("credits a day\tnone")


def test_gpu_time_is_set_and_lifted(batch: str, owner: Engine) -> None:
    """Per account, with why; none lifts it; zero is refused."""
    assert "36000" in ok("gpu-time", "acme", "--gpu-seconds-per-batch", "36000", "--why", "agreed")
    with owner.connect() as connection:
        assert connection.execute(text("SELECT gpu_seconds_per_batch_max FROM accounts")).scalar() == 36_000
    assert "none" in ok("gpu-time", "acme", "--gpu-seconds-per-batch", "none", "--why", "agreed")
    assert run("gpu-time", "acme", "--gpu-seconds-per-batch", "0", "--why", "x").exit_code == 1
    assert run("gpu-time", "acme", "--gpu-seconds-per-batch", "1.5", "--why", "x").exit_code == 2
    assert len(audit(owner, "account.gpu_time")) == 2
