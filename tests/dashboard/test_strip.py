"""Where a batch's time went."""

from datetime import UTC, datetime, timedelta
from typing import Any

from dashboard import strip
from gridline.client import Event

BEGIN = datetime(2026, 1, 5, 12, tzinfo=UTC)


def history(*told: tuple[int, str] | tuple[int, str, str]) -> list[Event]:
    """Events at minutes after the beginning; a wait with its code."""
    made = []
    for minute, kind, *code in told:
        details: dict[str, Any] = {"reason_code": code[0]} if code else {}
        made.append(Event(BEGIN + timedelta(minutes=minute), kind, "keeper", details))
    return made


def minutes(events: list[Event], now: int) -> list[tuple[str, int]]:
    """What it was at, and for how many minutes."""
    spans = strip.spans(events, BEGIN + timedelta(minutes=now))
    return [(one.what, int(one.took.total_seconds() // 60)) for one in spans]


def test_a_whole_life_adds_up() -> None:
    """Checking, the wait for a GPU, running and writing are told in order, and together they are its life."""
    events = history(
        (0, "created"), (2, "validated"), (2, "held"), (2, "in_progress"), (3, "waiting", "gridline_capacity"),
        (15, "went_on"), (15, "started"), (46, "finalizing"), (47, "completed"), (47, "settled"),
    )  # fmt: skip
    assert minutes(events, 100) == [
        ("checked", 2), ("ran", 1), ("waited for a GPU", 12), ("ran", 31), ("wrote its files", 1),
    ]  # fmt: skip


def test_a_wait_is_not_over_because_the_status_moves() -> None:
    """A batch that is called in_progress while it waits still waits; two reasons are two waits."""
    events = history(
        (0, "created"),
        (1, "waiting", "customer_credit"),
        (61, "waiting", "gridline_capacity"),
        (70, "in_progress"),
    )
    assert minutes(events, 90) == [("checked", 1), ("waited for credit", 60), ("waited for a GPU", 29)]


def test_a_cancelled_wait_stops() -> None:
    """Cancelling ends the wait, and nothing is counted after the end."""
    events = history((0, "created"), (1, "waiting", "account_capacity"), (5, "cancelling"), (6, "cancelled"))
    assert minutes(events, 1_000) == [
        ("checked", 1),
        ("waited for your account's other batches", 4),
        ("stopped", 1),
    ]


def test_a_batch_of_this_instant_has_no_strip_yet() -> None:
    """Without any time there is nothing to divide by."""
    assert minutes(history((0, "created")), 0) == []
    assert "gl-bar" in strip.draw(history((0, "created")), BEGIN)
