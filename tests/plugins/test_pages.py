from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select

from gridline.batches import moves
from gridline.batches.states import Status
from gridline.capacity import budget
from gridline.capacity.allocator import allocate
from gridline.customers.tables import Account, Audit
from gridline.db.work import Work, unit_of_work
from gridline.errors import Unavailable
from gridline.ledger import reading
from gridline.ledger.proving import prove
from gridline.proof.tables import Proof
from tests.gridline.capacity.yard import Yard
from tests.plugins.pages_app import SignIn

CREDIT = 10**12


def audited(action: str) -> list[tuple[str, str]]:
    """Who did this, and why."""
    with unit_of_work() as work:
        rows = work.session.scalars(select(Audit).where(Audit.action == action).order_by(Audit.sequence))
        return [(row.actor, row.details.get("why", row.details.get("note", ""))) for row in rows]


def available(account_id: str) -> int:
    """What the account can spend, in nano-credits; the books hold besides."""
    with unit_of_work() as work:
        assert prove(work) == []
        return reading.balance(work, account_id).available_nanos


def test_the_overview_says_what_waits_and_why(yard: Yard, signed_in: SignIn) -> None:
    """Open batches by status and reason, pools with their leases and heartbeats, the last proof, the day's budget."""
    account = yard.account("acme")
    running, waiting = yard.batch(account), yard.batch(account)
    allocate()
    yard.begin(running)
    yard.clock.advance(seconds=17)
    with unit_of_work() as work:
        work.session.add(Proof(at=work.now, broken=1, sentences=["Book x is off by one."]))
        budget.set_limit(work, 5 * 10**9, actor="operator:ada", why="a quiet day")
    html = signed_in("viewer").get("/gridline/")
    assert "2026-01-05 12:00:17 UTC" in html
    assert "gridline_capacity" in html
    assert "All GPUs that serve this model are busy with other batches." in html
    assert running in html
    assert waiting not in html
    assert "17 s ago" in html
    assert "1 promises do not hold" in html
    assert "Book x is off by one." in html
    assert "5.000000000 credits may start in a UTC day" in html
    assert "0.000001000 credits of batches have started today" in html


def test_an_empty_platform_has_its_pages_too(yard: Yard, signed_in: SignIn) -> None:
    """Nothing open, nothing proven, nothing limited, nobody there: said in words."""
    viewer = signed_in("viewer")
    html = viewer.get("/gridline/")
    for said in (
        "No batch is open.",
        "Nothing waits.",
        "No GPU is leased.",
        "No limit is set.",
        "None has been",
    ):
        assert said in html
    assert "No account matches." in viewer.get("/gridline/accounts")
    assert "No batch matches." in viewer.get("/gridline/batches?status=failed&reason=starting&before=5")
    assert "Nothing yet." in viewer.get("/gridline/audit")


def test_accounts_are_found_by_part_of_their_name(yard: Yard, signed_in: SignIn) -> None:
    """The list shows exact amounts and is narrowed by name or id; a percent sign is only a percent sign."""
    acme, other = yard.account("acme"), yard.account("100% other")
    yard.batch(acme)
    viewer = signed_in("viewer")
    html = viewer.get("/gridline/accounts")
    assert "999.999999000" in html
    assert "0.000001000" in html
    assert other in html
    assert other not in viewer.get("/gridline/accounts?search=CME")
    assert acme not in viewer.get("/gridline/accounts?search=%25")
    assert other not in viewer.get(f"/gridline/accounts?search={acme}")
    assert "No account matches." in viewer.get("/gridline/accounts?search=%00nobody")


def test_an_account_shows_its_limits_entries_and_changes(yard: Yard, signed_in: SignIn) -> None:
    """Limits, balance, what moved it and who changed what stand on one page; an unknown id is refused in a sentence."""
    account = yard.account("acme", leases_max=3)
    yard.batch(account)
    viewer = signed_in("viewer")
    html = viewer.get(f"/gridline/accounts/{account}")
    for said in (
        "999.999999000 credits",
        "-0.000001000",
        "1000.000000000",
        "account.opened",
        "2026-01-05 12:00:00 UTC",
    ):
        assert said in html
    assert "There is no account" in viewer.get("/gridline/accounts/acct_x%00y", status=404)


def test_a_grant_is_given_once(yard: Yard, signed_in: SignIn) -> None:
    """Sent twice from the same page it is one grant, one entry and one row in the audit, under the operator's name."""
    account = yard.account("acme")
    page = f"/gridline/accounts/{account}"
    operator = signed_in("operator")
    operator.get(page)
    form = operator.forms
    assert "Granted 2.500000001 credits." in operator.post(
        f"{page}/grant", amount="2.500000001", why="a  gift"
    )
    operator.forms = form
    assert "done before" in operator.post(f"{page}/grant", amount="2.500000001", why="a gift")
    assert available(account) == CREDIT + 2_500_000_001
    assert audited("account.grant") == [("operator:operator", "a gift")]
    html = operator.get(page)
    assert html.count("operator:operator") == 2  # the entry, and the audit
    assert operator.forms["grant"]["key"] != form["grant"]["key"]


def test_a_key_for_another_amount_is_refused(yard: Yard, signed_in: SignIn) -> None:
    """Going back and typing another amount under a key that was used gives nothing, and the page has a new key."""
    account = yard.account("acme")
    page = f"/gridline/accounts/{account}"
    admin = signed_in("admin")
    admin.get(page)
    form = admin.forms
    admin.post(f"{page}/grant", amount="1", why="x")
    admin.forms = form
    assert "was used before" in admin.post(f"{page}/grant", status=409, amount="2", why="x")
    assert "Granted 2.000000000 credits." in admin.post(f"{page}/grant", amount="2", why="x")
    assert available(account) == CREDIT + 3 * 10**9


@pytest.mark.parametrize(
    ("amount", "why", "said"),
    [
        ("1", " ", "Say why"),
        ("1", "x" * 501, "printable characters"),
        ("1", "a\x07b", "printable characters"),
        ("1e3", "x", "is not an amount of credits"),
        ("0.0000000001", "x", "at most nine after the point"),
        ("1000000.000000001", "x", "At most 1000000.000000000 credits at once"),
        ("0", "x", "above 0"),
    ],
)
def test_what_cannot_be_granted_is_said_and_kept(
    yard: Yard, signed_in: SignIn, amount: str, why: str, said: str
) -> None:
    """A refusal is a sentence on the same page, what was typed is still there, and the same form then works."""
    page = f"/gridline/accounts/{yard.account('acme')}"
    operator = signed_in("operator")
    operator.get(page)
    key = operator.forms["grant"]["key"]
    html = operator.post(f"{page}/grant", status=400, amount=amount, why=why)
    assert said in html
    assert f'value="{amount}"' in html
    assert operator.forms["grant"]["key"] == key
    assert "Granted 1.000000000 credits." in operator.post(f"{page}/grant", amount="1", why="x")


def test_a_grant_whose_answer_was_lost_can_be_sent_again(
    yard: Yard, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database goes away just after the commit: the page keeps key and words, and the second try finds the first."""
    from gridline_airflow.pages import page as pages

    account = yard.account("acme")
    address = f"/gridline/accounts/{account}"
    operator = signed_in("operator")
    operator.get(address)

    @contextmanager
    def lost() -> Iterator[Work]:
        with unit_of_work() as work:
            yield work
        raise Unavailable("The database is away or busy. Try again in a moment.")

    with monkeypatch.context() as patch:
        patch.setattr(pages, "unit_of_work", lost)
        html = operator.post(f"{address}/grant", status=503, amount="1", why="a gift")
    assert "The database is away or busy." in html
    assert 'value="a gift"' in html
    assert "done before" in operator.post(f"{address}/grant", amount="1", why="a gift")
    assert available(account) == CREDIT + 10**9


def test_an_adjustment_takes_only_what_is_there(yard: Yard, signed_in: SignIn) -> None:
    """A correction may take; more than is available is refused with both amounts."""
    account = yard.account("acme")
    page = f"/gridline/accounts/{account}"
    operator = signed_in("operator")
    operator.get(page)
    html = operator.post(f"{page}/adjust", status=429, amount="-1000.000000001", why="a mistake")
    assert "1000.000000001 credits are needed, 1000.000000000 are available" in html
    assert "Adjusted by -0.500000000 credits." in operator.post(
        f"{page}/adjust", amount="-0.5", why="a mistake"
    )
    assert available(account) == CREDIT - 5 * 10**8
    assert audited("account.adjust") == [("operator:operator", "a mistake")]


def test_limits_are_changed_as_they_were_seen(yard: Yard, signed_in: SignIn) -> None:
    """A second click changes nothing, and a page that was made before somebody else's change sets nothing back."""
    account = yard.account("acme")
    page = f"/gridline/accounts/{account}"
    wanted: dict[str, Any] = {
        "open_batches": "5",
        "leases": "6",
        "daily_credits": "7.5",
        "requests_per_minute": "8",
        "why": "asked",
    }
    operator = signed_in("operator")
    operator.get(page)
    form = operator.forms
    assert "The limits are changed." in operator.post(f"{page}/limits", **wanted)
    operator.forms = form
    assert "nothing has changed" in operator.post(f"{page}/limits", **wanted)
    operator.forms = form
    assert "since you opened this page" in operator.post(
        f"{page}/limits", status=409, **(wanted | {"leases": "1"})
    )
    assert "whole number" in operator.post(f"{page}/limits", status=400, **(wanted | {"leases": "-1"}))
    with unit_of_work() as work:
        row = work.session.get_one(Account, account)
        now = (row.open_batches_max, row.leases_max, row.daily_credits_nanos_max, row.requests_per_minute_max)
    assert now == (5, 6, 7_500_000_000, 8)
    assert audited("account.limits") == [("operator:operator", "asked")]


def test_batches_are_filtered_and_paged(
    yard: Yard, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newest first, by status, reason and account, a page at a time without a gap or a repetition."""
    from gridline.operate.desk import batches

    acme, other = yard.account("acme"), yard.account("other")
    first, second, third = yard.batch(acme), yard.batch(acme), yard.batch(other)
    yard.change(second, reason_code="customer_credit")
    yard.cancel(third)
    viewer = signed_in("viewer")

    def listed(query: str) -> list[str]:
        html = viewer.get(f"/gridline/batches{query}")
        found = [one for one in (first, second, third) if one in html]
        return sorted(found, key=html.index)

    assert listed("") == [third, second, first]
    assert listed("?reason=customer_credit") == [second]
    assert listed("?status=cancelling") == [third]
    assert listed(f"?account_id={acme}&status=validating") == [second, first]
    assert listed("?reason=none") == []
    monkeypatch.setattr(batches.page, "__kwdefaults__", {"before": None, "limit": 2})
    html = viewer.get("/gridline/batches")
    assert first not in html
    older = html.partition("before=")[2].partition("&")[0]
    assert listed(f"?before={older}") == [first]


def test_a_batch_shows_where_it_stands(yard: Yard, signed_in: SignIn) -> None:
    """Reason, waits so far, hold, partitions, attempts and leases on one page, and the way to its run in Airflow."""
    batch = yard.batch(yard.account("acme"), partitions=2)
    allocate()
    yard.begin(batch)
    html = signed_in("viewer").get(f"/gridline/batches/{batch}")
    lease = yard.leases()[0].id
    for said in (
        "0.000001000 credits",
        "smollm2-135m-instruct",
        "r.jsonl",
        "1 running, 1 waiting",
        lease,
        "0 s ago",
    ):
        assert said in html
    assert f"/dags/batch/runs/{batch}" in html
    assert '<form method="post"' not in html  # a viewer has nothing to send


def test_a_batch_is_held_and_released(yard: Yard, signed_in: SignIn) -> None:
    """The note is on the page and in the audit with the operator's name; both twice change nothing more."""
    batch = yard.batch(yard.account("acme"))
    page = f"/gridline/batches/{batch}"
    operator = signed_in("operator")
    operator.get(page)
    assert "A note has 1 to" in operator.post(f"{page}/hold", status=400, note=" ")
    form = operator.forms
    assert "We look at it." in operator.post(f"{page}/hold", note="We look at it.")
    held = operator.forms
    operator.forms = form
    assert "held already" in operator.post(f"{page}/hold", note="Other.")
    operator.forms = held
    assert "is released" in operator.post(f"{page}/release")
    operator.forms = held
    assert "Nobody holds" in operator.post(f"{page}/release")
    assert audited("batch.operator_hold") == [("operator:operator", "We look at it.")]
    assert audited("batch.operator_release") == [("operator:operator", "")]
    assert yard.row(batch).operator_hold_at is None


def test_a_batch_is_cancelled_once_and_with_a_reason(yard: Yard, signed_in: SignIn) -> None:
    """Its customer sees that an operator did it, the audit who and why; one that has ended says so."""
    batch = yard.batch(yard.account("acme"))
    page = f"/gridline/batches/{batch}"
    operator = signed_in("operator")
    operator.get(page)
    assert "Say why" in operator.post(f"{page}/cancel", status=400, why="")
    form = operator.forms
    assert "being cancelled" in operator.post(f"{page}/cancel", why="abuse")
    operator.forms = form
    assert "ending already" in operator.post(f"{page}/cancel", why="abuse")
    assert yard.row(batch).status == Status.CANCELLING
    assert audited("batch.operator_cancel") == [("operator:operator", "abuse")]
    ended = yard.batch(yard.account("other"))
    with unit_of_work() as work:
        moves.move(work, moves.locked(work, ended), Status.EXPIRED)
    operator.forms = form
    said = operator.post(f"/gridline/batches/{ended}/cancel", status=409, why="abuse")
    assert "Cannot cancel a batch with status &#39;expired&#39;." in said


@pytest.mark.parametrize(
    ("waiting", "held", "task"),
    [("parked", True, "wait_for_capacity"), ("parked", False, "hold_credits"), (None, True, None)],
)
def test_a_run_is_asked_for_once(
    yard: Yard, signed_in: SignIn, waiting: str | None, held: bool, task: str | None
) -> None:
    """The keeper's outbox gets one ask, from where the batch waits; a second click finds it, done or not."""
    batch = yard.batch(yard.account("acme"), waiting=waiting, held=held)
    page = f"/gridline/batches/{batch}"
    operator = signed_in("operator")
    operator.get(page)
    form = operator.forms
    assert "The keeper asks Airflow" in operator.post(f"{page}/run")
    assert "its run is asked for" in operator.get(page)
    operator.forms = form
    assert "asked for already" in operator.post(f"{page}/run")
    with unit_of_work() as work:
        work.session.merge(yard.resumes()[0]).done_at = work.now
    operator.forms = form
    assert "asked for already" in operator.post(f"{page}/run")
    assert [(one.kind, one.from_task) for one in yard.resumes()] == [("resume", task)]
    assert audited("batch.run_asked") == [("operator:operator", "")]


def test_the_audit_is_read_newest_first(yard: Yard, signed_in: SignIn) -> None:
    """Everybody's changes, with account, reason and time."""
    account = yard.account("acme")
    with unit_of_work() as work:
        budget.set_limit(work, None, actor="operator:ada", why="a quiet day")
    html = signed_in("viewer").get("/gridline/audit")
    assert html.index("platform.daily_limit") < html.index("account.opened")
    assert "why: a quiet day" in html
    assert f"/gridline/accounts/{account}" in html
