"""Entries and statements: what a customer reads adds up, to the last unit, and no spreadsheet runs it."""

import csv
import io
from datetime import date, timedelta

import pytest

from gridline import ids
from gridline.clock import Days, FrozenClock
from gridline.db.work import Work
from gridline.errors import InvalidRequest, NotFound
from gridline.ledger import correcting, entries, statement
from gridline.ledger.holding import place
from gridline.ledger.posting import grant
from gridline.ledger.settling import settle
from gridline.money import credits_nanos
from tests.gridline.ledger.bench import CARD, account, batch

MONDAY, TUESDAY, WEDNESDAY = (date(2026, 1, day) for day in (5, 6, 7))


@pytest.fixture
def account_id(work: Work) -> str:
    """An account with entries on three days: a grant; a hold and its settlement; a refund and an adjustment."""
    one = account(work, "one", credit_nanos=1000)
    work.now += timedelta(days=1)
    made = batch(work, one.id)
    place(work, batch_id=made.id, account_id=one.id, amount_nanos=400, card=CARD)
    settle(work, batch_id=made.id, charge_nanos=300, lines=1, input_tokens=3, output_tokens=4)
    work.now += timedelta(days=1)
    correcting.refund(work, made.id, 30, actor="operator:ann", why="late", key="a")
    correcting.adjust(work, one.id, -5, actor="operator:ann", why="=1+1", key="b")
    other = account(work, "other", credit_nanos=77)
    assert other.id != one.id
    return one.id


def test_entries_say_what_they_did_to_available_and_held(work: Work, account_id: str) -> None:
    """Newest first: kind, what moved, the batch, who and why; the operator's own name is not shown."""
    found, more = entries.page(work, account_id=account_id, after=None, limit=10)
    assert not more
    shown = [entries.entry_object(one) for one in found]
    assert [(one["kind"], one["amount"], one["available_change"], one["held_change"]) for one in shown] == [
        ("adjust", "-0.000000005", "-0.000000005", "0.000000000"),
        ("refund", "0.000000030", "0.000000030", "0.000000000"),
        ("settle", "-0.000000300", "0.000000100", "-0.000000400"),
        ("hold", "0.000000000", "-0.000000400", "0.000000400"),
        ("grant", "0.000001000", "0.000001000", "0.000000000"),
    ]
    assert [one["actor"] for one in shown] == ["operator", "operator", "platform", "platform", "operator"]
    assert len({one["batch_id"] for one in shown[1:4]}) == 1
    assert shown[0]["batch_id"] is None
    assert shown[0]["why"] == "=1+1"


def test_entries_are_paged_without_gap_or_overlap(work: Work, account_id: str) -> None:
    """Each page goes on after the one before; a cursor that is not the account's is not found."""
    pages: list[list[str]] = []
    after: str | None = None
    more = True
    while more:
        found, more = entries.page(work, account_id=account_id, after=after, limit=2)
        pages.append([one.kind for one in found])
        after = found[-1].id
    assert pages == [["adjust", "refund"], ["settle", "hold"], ["grant"]]
    stranger = account(work, "stranger")
    for cursor in (str(after), ids.new("transaction"), "txn_\0"):
        with pytest.raises(NotFound):
            entries.page(work, account_id=stranger.id, after=cursor, limit=2)


def test_a_statement_adds_up(work: Work, account_id: str) -> None:
    """Opening, entries and closing of any days agree, and the next statement opens where this one closed."""
    days = Days(TUESDAY, WEDNESDAY)
    shown = statement.statement_object(work, account_id, days)
    assert shown["opening"] == {"available": "0.000001000", "held": "0.000000000"}
    assert shown["closing"] == {"available": "0.000000725", "held": "0.000000000"}
    assert [one["kind"] for one in shown["data"]] == ["hold", "settle", "refund", "adjust"]
    moved = sum(credits_nanos(one["available_change"]) for one in shown["data"])
    assert 1000 + moved == 725
    later = statement.statement_object(work, account_id, Days(date(2026, 1, 8), date(2026, 1, 8)))
    assert (later["opening"], later["data"]) == (shown["closing"], [])
    first = statement.statement_object(work, account_id, Days(MONDAY, MONDAY))
    assert first["closing"] == shown["opening"]


def test_a_statement_is_read_in_parts(work: Work, account_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few entries are read at a time, none is lost or told twice, also of one instant."""
    whole = statement.statement_object(work, account_id, Days(MONDAY, WEDNESDAY))
    monkeypatch.setattr(entries, "READ_ROWS", 1)
    assert statement.statement_object(work, account_id, Days(MONDAY, WEDNESDAY)) == whole
    assert len(whole["data"]) == 5


def test_a_statement_too_long_for_json_says_what_to_do(
    work: Work, account_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the limit it is answered, one entry over it is refused by naming fewer days and CSV."""
    monkeypatch.setattr(statement, "STATEMENT_ENTRIES_MAX", 5)
    assert len(statement.statement_object(work, account_id, Days(MONDAY, WEDNESDAY))["data"]) == 5
    monkeypatch.setattr(statement, "STATEMENT_ENTRIES_MAX", 4)
    with pytest.raises(InvalidRequest, match="format=csv"):
        statement.statement_object(work, account_id, Days(MONDAY, WEDNESDAY))


def test_the_sheet_holds_the_running_balance(work: Work, account_id: str) -> None:
    """CSV as RFC 4180 has it: CRLF, a head, opening and closing, each line with the balances that it left."""
    text = b"".join(statement.csv_lines(work, account_id, Days(TUESDAY, WEDNESDAY))).decode()
    assert text.count("\r\n") == text.count("\n") == 7
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(one["kind"], one["available"], one["held"]) for one in rows] == [
        ("opening", "0.000001000", "0.000000000"),
        ("hold", "0.000000600", "0.000000400"),
        ("settle", "0.000000700", "0.000000000"),
        ("refund", "0.000000730", "0.000000000"),
        ("adjust", "0.000000725", "0.000000000"),
        ("closing", "0.000000725", "0.000000000"),
    ]
    assert rows[0]["at"] == "2026-01-06T00:00:00Z"
    assert rows[-1]["at"] == "2026-01-08T00:00:00Z"
    assert rows[4]["why"] == "'=1+1"
    assert rows[4]["amount"] == "-0.000000005"


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n", "\x00", " =1", "\x7f"]
)
def test_what_a_spreadsheet_could_run_is_guarded(text: str) -> None:
    """A text that begins like a formula, or with a control character, has an apostrophe before it."""
    assert statement.guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "invoice 17", "ünïcode", "a=1", "1-1", "'=1"])
def test_plain_text_stays_as_it_is(text: str) -> None:
    """Nothing else is changed."""
    assert statement.guarded(text) == text


def test_quotes_commas_and_lines_stay_in_their_cell(work: Work, clock: FrozenClock) -> None:
    """What an operator wrote comes back as it was written."""
    one = account(work, "one")
    why = 'said "no", twice\r\nand left'
    grant(work, one.id, 5, actor="operator", why=why, key="k")
    text = b"".join(statement.csv_lines(work, one.id, Days.of(work.now))).decode()
    assert [row["why"] for row in csv.DictReader(io.StringIO(text, newline=""))] == ["", why, ""]
