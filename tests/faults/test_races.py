"""Races that money and limits must survive, a hundred times each from one barrier, on the real database.

The open limit, keys, and creates against deletes race over two API processes in ``test_create_races.py``.
"""

import random
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, func, select

from gridline import limits
from gridline.batches import cancelling, finishing, moves, reading, waits
from gridline.batches.holding import hold_credits
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import TERMINAL, Status, Waiting
from gridline.batches.tables import Batch
from gridline.clock import FrozenClock
from gridline.customers import accounts, tokens
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import Conflict, LimitExceeded
from gridline.files import receiving
from gridline.files.tables import File
from gridline.keeper.credit import resume_funded
from gridline.keeper.deadlines import Deadlines
from gridline.ledger import holding, posting, proving
from gridline.ledger import reading as books
from gridline.ledger.errors import InsufficientCredit
from gridline.ledger.tables import Hold, Resolution
from gridline.profiles.profile import load
from gridline.storage.objects import Store
from tests.faults.conftest import Nodes
from tests.gridline.batches.bench import CREDIT, Bench
from tests.gridline.ledger.bench import CARD, account, at_once, batch
from tests.racing import together

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

ROUNDS = 100
REVOKED_SECONDS = 5
LINE = b'{"custom_id":"a"}\n'


def shuffled(chance: random.Random, calls: list[Callable[[], Any]]) -> list[Any]:
    """What each call returned or raised, all begun at once, each after its own few milliseconds."""
    waits_ = [chance.uniform(0, 0.01) for _ in calls]

    def one(number: int) -> Any:
        time.sleep(waits_[number])  # the offset is what is tried
        return calls[number]()

    return at_once(len(calls), one)


def prove_books() -> None:
    """The books hold."""
    with unit_of_work() as work:
        assert proving.prove(work) == []


def test_fifty_holds_against_a_balance_of_seven(database: Engine, clock: FrozenClock) -> None:
    """Always exactly seven of fifty parallel holds are placed, and what is available never falls below zero."""
    for number in range(ROUNDS):
        with unit_of_work() as work:
            one = account(work, f"one-{number}", credit_nanos=7 * 100 + 99)
            made = [batch(work, one.id).id for _ in range(50)]

        def place(place_: int, made: list[str] = made, owner: str = one.id) -> None:
            with unit_of_work() as work:
                holding.place(work, batch_id=made[place_], account_id=owner, amount_nanos=100, card=CARD)

        answers = at_once(50, place)
        assert answers.count(None) == 7
        assert sum(isinstance(answer, InsufficientCredit) for answer in answers) == 43
        with unit_of_work() as work:
            assert books.balance(work, one.id) == books.Balances(available_nanos=99, held_nanos=700)
    prove_books()


@pytest.fixture
def roomy(database: Engine, clock: FrozenClock, store: Store) -> Bench:
    """An account that may have any number of batches, and credit for them."""
    with unit_of_work() as work:
        one = accounts.open_account(work, "racer")
        one.open_batches_max, one.daily_credits_nanos_max = 10_000, 10**18
        posting.grant(work, one.id, 10_000 * CREDIT, actor="operator", why="races", key="races")
    return Bench(clock, store, one.id)


def test_cancel_completion_and_expiry_at_random_moments(roomy: Bench, clock: FrozenClock) -> None:
    """One legal end, whichever comes first: counts are what the files hold, one hold and one settlement, none open."""
    chance, ends = random.Random(4), set()
    for number in range(ROUNDS):
        made = roomy.held(lines=(3, 2))
        for part, lines in enumerate(([0, 1, 2], [3, 4][: chance.randint(0, 2)])):
            lease = f"lease-{number}-{part}"
            roomy.claim(made, part, lease=lease, state="done")
            roomy.segment(made, part, lines, lease=lease) if lines else None
        with unit_of_work() as work:
            moves.locked(work, made.id).any_line_ran = True
        clock.moment = made.expires_at - timedelta(seconds=chance.choice((1, 1, 0)))

        later = chance.choice((0.0, 0.1))

        def cancel(batch_id: str = made.id, later: float = later) -> str:
            time.sleep(later)  # in half of the rounds the end has begun by then
            with unit_of_work() as work:
                return cancelling.cancel(
                    work, account_id=roomy.account_id, batch_id=batch_id, actor="t"
                ).status

        def end(batch_id: str = made.id) -> str:
            return finishing.finish(batch_id, run_over=True)

        answers = shuffled(chance, [cancel, end, end, Deadlines().enforce])
        assert not [one for one in answers if isinstance(one, Exception) and not isinstance(one, Conflict)]
        Deadlines().enforce()
        ends.add(check_end(roomy, made.id))
    assert ends == {"completed", "cancelled", "expired"}
    prove_books()


def check_end(bench: Bench, batch_id: str) -> str:
    """The batch ended once: its files hold each line once, its counts say so, its hold is resolved."""
    with unit_of_work() as work:
        row = work.session.get_one(Batch, batch_id)
        shown = reading.batch_object(work, row)
        files = [work.session.get_one(File, one) for one in (row.output_file_id, row.error_file_id) if one]
        resolved = work.session.scalar(
            select(func.count()).select_from(Resolution).where(Resolution.batch_id == batch_id)
        )
        open_batches = work.session.get_one(Account, bench.account_id).open_batches
    assert row.status in TERMINAL
    lines = [bench.store.read(one.object_key).count(b"\n") for one in files]
    counts = shown["request_counts"]
    assert sum(lines) == counts["total"] == 5
    assert counts["completed"] + counts["failed"] + counts["cancelled"] == 5
    assert (resolved, open_batches) == (1, 0)
    return str(row.status)


def test_settling_a_top_up_and_a_second_hold(roomy: Bench) -> None:
    """However they meet, what is available afterwards is what a ledger on paper says."""
    chance, turns = random.Random(5), count()
    for _ in range(ROUNDS):
        first = roomy.held(lines=(2,))
        roomy.claim(first, 0, lease=f"lease-{first.id}", state="done")
        roomy.segment(first, 0, [0, 1], lease=f"lease-{first.id}")
        second, given = roomy.create(), chance.randint(1, 9) * CREDIT
        with unit_of_work() as work:
            before = books.balance(work, roomy.account_id)

        def grant(amount: int = given) -> None:
            with unit_of_work() as work:
                key = f"top-up-{next(turns)}"
                posting.grant(work, roomy.account_id, amount, actor="operator", why="races", key=key)

        def hold(batch_id: str = second.id) -> None:
            with unit_of_work() as work:
                holding.place(
                    work, batch_id=batch_id, account_id=roomy.account_id, amount_nanos=CREDIT, card=CARD
                )

        def end(batch_id: str = first.id) -> None:
            finishing.finish(batch_id, run_over=True)

        assert shuffled(chance, [end, grant, hold, end, hold]) == [None] * 5
        with unit_of_work() as work:
            after = books.balance(work, roomy.account_id)
            charged = work.session.get_one(Resolution, first.id).charged_nanos
            moves.move(work, moves.locked(work, second.id), Status.CANCELLING)
        assert after.held_nanos == before.held_nanos
        assert after.available_nanos == before.available_nanos + given - charged
        finishing.finish(second.id, run_over=True)
    prove_books()


def test_fifty_uploads_at_the_edge_of_the_room(
    database: Engine, clock: FrozenClock, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for one more file, one of many uploads at once is kept; the others leave neither row nor bytes counted."""
    monkeypatch.setattr(limits, "ACCOUNT_FILES_MAX", 3)

    def upload(owner: str) -> None:
        with receiving.receive(store, owner, load("gridline")) as incoming:
            incoming.name("r.jsonl")
            incoming.write(LINE)
        receiving.keep(store, incoming, expires_after_seconds=None)

    for number in range(ROUNDS):
        with unit_of_work() as work:
            owner = account(work, f"edge-{number}").id
        upload(owner)
        upload(owner)
        answers = together(16, lambda owner=owner: upload(owner))  # type: ignore[misc]
        assert answers.count(None) == 1
        assert sum(isinstance(one, LimitExceeded) for one in answers) == 15
        with unit_of_work() as work:
            row = work.session.get_one(Account, owner)
            assert (row.files_count, row.files_bytes) == (3, 3 * len(LINE))


def test_a_wait_for_credit_a_top_up_and_the_deadline(roomy: Bench, clock: FrozenClock) -> None:
    """A 72h batch that waits for credit at its start bound either holds once or fails, and its hold is never left."""
    chance = random.Random(9)
    with unit_of_work() as work:
        work.session.get_one(Account, roomy.account_id).open_batches_max = 10
    ends = set()
    for number in range(ROUNDS):
        with unit_of_work() as work:
            owner = account(work, f"poor-{number}").id
            made = batch(work, owner, window="72h", partitions=1)
            made.ceiling_nanos, made.waiting = CREDIT, Waiting.PARKED
            work.session.get_one(Account, owner).open_batches = 1
            waits.set_reason(work, made, ReasonCode.CUSTOMER_CREDIT)
            due = made.start_by
        clock.moment = due - timedelta(seconds=chance.choice((1, 0)))

        def top_up(owner: str = owner) -> None:
            with unit_of_work() as work:
                posting.grant(work, owner, CREDIT, actor="operator", why="races", key="top-up")
            resume_funded()

        if number % 4 == 0:  # on a slow machine no top-up of the race may be over before both holds are
            top_up()

        def hold(batch_id: str = made.id) -> str:
            return hold_credits(batch_id)

        answers = shuffled(chance, [top_up, hold, hold, Deadlines().enforce, Deadlines().enforce])
        assert not [one for one in answers if isinstance(one, Exception)]
        clock.moment = due
        Deadlines().enforce()
        with unit_of_work() as work:
            row, held = work.session.get_one(Batch, made.id), work.session.get(Hold, made.id)
            resolved = work.session.get(Resolution, made.id)
            assert row.status == Status.FAILED
            assert row.error_code in {"insufficient_quota", "capacity_unavailable"}
            assert (held is None) == (resolved is None)
            assert books.balance(work, owner) == books.Balances(CREDIT, 0)
            ends.add(held is not None)
    assert ends == {True, False}
    prove_books()


def test_revoked_tokens_end_everywhere(nodes: Nodes) -> None:
    """A hundred tokens in use on two processes are revoked at once: within 5 seconds no request of theirs passes."""
    with unit_of_work() as work:
        issued = [tokens.issue(work, nodes.account_id, f"t{number}") for number in range(ROUNDS)]
    addresses = [str(one.base_url) for one in nodes.clients]

    def ask(text: str, address: str) -> int:
        headers = {"Authorization": f"Bearer {text}"}
        return httpx.get(f"{address}/v1/models", headers=headers, timeout=60, verify=False).status_code

    texts = [text for _, text in issued]
    turns = count()
    used = together(
        40, lambda: [ask(one, addresses[next(turns) % 2]) for one in texts[next(turns) % 7 :: 20]]
    )
    assert all(status == 200 for statuses in used if isinstance(statuses, list) for status in statuses)
    with unit_of_work() as work:
        for token, _ in issued:
            tokens.revoke(work, nodes.account_id, token.id, actor="operator:t")
    revoked = time.monotonic()
    for text in texts:
        for address in addresses:
            begun = time.monotonic()
            # Who comes too often with a wrong token hears that instead.
            while (status := ask(text, address)) not in {401, 429}:
                assert status == 200
                assert begun - revoked < REVOKED_SECONDS
                begun = time.monotonic()
