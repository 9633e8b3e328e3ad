"""Events arrive at least once, in bounded time, whatever receivers and crashes do; nobody holds up anybody."""

import json
import logging
import threading
import time
from datetime import timedelta

import pytest

from gridline import limits
from gridline.batches import moves
from gridline.batches.states import Status
from gridline.customers import accounts
from gridline.db import work as works
from gridline.db.work import Work, unit_of_work
from gridline.errors import Unavailable
from gridline.notices import addresses, delivering, parcels, webhooks
from gridline.notices.delivering import Sender
from gridline.notices.parcels import Outcome
from gridline.notices.requests import WebhookRequest
from tests.gridline.notices.conftest import LOOPBACK, Notices
from tests.gridline.notices.receiver import Got, Receiver

RETRIES = len(limits.WEBHOOK_RETRY_SECONDS)


def test_the_end_of_a_batch_arrives(notices: Notices, receiver: Receiver) -> None:
    """One request with OpenAI's event in it, to the whole address, naming the host; then nothing is due any more."""
    notices.webhook(receiver.url)
    batch_id = notices.ended()
    assert notices.deliver() == 1
    (got,) = receiver.got
    event = json.loads(got.body)
    assert event == {
        "id": got.event_id,
        "object": "event",
        "created_at": int(notices.clock.now().timestamp()),
        "type": "batch.failed",
        "data": {"id": batch_id},
    }
    assert got.path == "/hooks?key=hidden"
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert got.headers["content-type"] == "application/json"
    (delivery,) = notices.deliveries()
    assert (delivery.last_status, delivery.due_at, delivery.delivered_at) == (204, None, notices.clock.now())
    assert notices.deliver() == 0


def test_only_who_asked_hears_of_it(notices: Notices, receiver: Receiver) -> None:
    """Other events, disabled webhooks and other accounts get nothing, and nothing is stored for them."""
    with unit_of_work() as work:
        other = accounts.open_account(work, "other").id
    notices.webhook(receiver.url, events=("batch.completed",))
    notices.webhook(receiver.url, account_id=other)
    off = notices.webhook(receiver.url)
    with unit_of_work() as work:
        found = webhooks.get(work, off.account_id, off.id, lock=True)
        webhooks.update(work, found, WebhookRequest(disabled=True), actor="token:t")
    notices.ended()
    assert notices.deliveries() == []


def test_the_event_is_written_with_the_end_or_not_at_all(notices: Notices, receiver: Receiver) -> None:
    """A transaction that fails after the move leaves neither the end nor the event."""
    notices.webhook(receiver.url)
    batch = notices.bench.create()
    with pytest.raises(RuntimeError), unit_of_work() as work:
        _move_and_fail(work, batch.id)
    assert notices.deliveries() == []


def _move_and_fail(work: Work, batch_id: str) -> None:
    moves.move(work, moves.locked(work, batch_id), Status.FAILED)
    work.session.flush()
    raise RuntimeError


@pytest.mark.thorough
def test_a_hundred_events_arrive_though_half_the_answers_fail(notices: Notices, receiver: Receiver) -> None:
    """At a receiver that fails half of the firsts, half of the seconds and so on, each arrives within six hours."""
    failures: dict[str, int] = {}

    def half(got: Got) -> int:
        with receiver.lock:
            number = len(failures) + 1
            # As many as the number has zeros at its end in binary: 0 for every second event, 1 for every fourth, …
            left = failures.setdefault(got.event_id, (number & -number).bit_length() - 1)
            failures[got.event_id] -= 1
        return 500 if left > 0 else 200

    receiver.answer = half
    notices.webhook(receiver.url)
    batches = {notices.ended() for _ in range(100)}
    began = notices.clock.now()
    while due := [one.due_at for one in notices.deliveries() if one.due_at]:
        notices.clock.moment = max(notices.clock.now(), min(due))
        notices.deliver()
    assert {one.subject_id for one in notices.deliveries() if one.delivered_at} == batches
    assert len(receiver.got) > 190
    assert notices.clock.now() - began < timedelta(hours=6)


def test_retries_keep_the_schedule_and_then_it_is_given_up(notices: Notices, receiver: Receiver) -> None:
    """Eleven attempts over about three days, a fifth more or less; then the webhook is disabled, saying why."""
    receiver.answer = lambda _: 503
    webhook = notices.webhook(receiver.url)
    notices.ended()
    began = notices.clock.now()
    for number, seconds in enumerate(limits.WEBHOOK_RETRY_SECONDS, start=1):
        assert notices.deliver() == 1
        (one,) = notices.deliveries()
        assert (one.attempts, one.last_status, one.given_up_at) == (number, 503, None)
        assert one.due_at
        pause = (one.due_at - notices.clock.now()).total_seconds()
        assert 0.8 * seconds <= pause <= 1.2 * seconds
        notices.clock.moment = one.due_at - timedelta(seconds=1)
        assert notices.deliver() == 0
        notices.clock.moment = one.due_at
    assert notices.deliver() == 1
    (one,) = notices.deliveries()
    assert (one.attempts, one.due_at, one.given_up_at) == (RETRIES + 1, None, notices.clock.now())
    assert timedelta(days=2.3) < notices.clock.now() - began < timedelta(days=3.6)
    shown = notices.shown(webhook)
    assert (shown.disabled_at, shown.disabled_reason) == (notices.clock.now(), "failing")
    notices.ended()
    assert len(notices.deliveries()) == 1


def test_one_success_keeps_a_webhook_alive(notices: Notices, receiver: Receiver) -> None:
    """An event that is given up disables nothing while others arrive."""
    webhook = notices.webhook(receiver.url)
    bad = notices.ended()
    receiver.answer = lambda got: 500 if bad.encode() in got.body else 200
    for _ in range(RETRIES + 1):
        notices.deliver()
        notices.ended()
        notices.deliver()
        notices.clock.advance(hours=30)
    assert notices.deliveries()[0].given_up_at
    assert notices.shown(webhook).disabled_at is None


def test_enabled_again_it_gets_what_it_is_owed(notices: Notices, receiver: Receiver) -> None:
    """A disabled webhook is sent nothing; what was open then goes out when it is enabled."""
    webhook = notices.webhook(receiver.url)
    notices.ended()
    receiver.answer = lambda _: 500
    notices.deliver()
    for disabled, sent in ((True, 0), (False, 1)):
        with unit_of_work() as work:
            found = webhooks.get(work, webhook.account_id, webhook.id, lock=True)
            webhooks.update(work, found, WebhookRequest(disabled=disabled), actor="token:t")
        assert notices.deliver() == sent


def test_a_crash_between_sending_and_noting_sends_it_again(
    notices: Notices, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim lapses after a minute, and the very event comes a second time: late, never lost."""

    def away(*_: object) -> None:
        raise Unavailable("away")

    notices.webhook(receiver.url)
    notices.ended()
    with monkeypatch.context() as patch:
        patch.setattr(parcels, "note", away)
        with pytest.raises(Unavailable):
            notices.deliver()
    assert notices.deliver() == 0
    notices.clock.advance(seconds=parcels.CLAIM_SECONDS)
    assert notices.deliver() == 1
    assert len({got.event_id for got in receiver.got}) == 1
    assert len(receiver.got) == 2


def test_two_deliverers_share_the_work(notices: Notices, receiver: Receiver) -> None:
    """Two keepers at once send all, and nothing twice while both live."""
    notices.webhook(receiver.url)
    for _ in range(40):
        notices.ended()
    sent: list[int] = []
    threads = [threading.Thread(target=lambda: sent.append(notices.deliver())) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    # Each may leave what the other had claimed when it looked last.
    sent.append(notices.deliver())
    assert sum(sent) == 40
    assert len({got.event_id for got in receiver.got}) == len(receiver.got) == 40


def test_two_claims_at_once_are_of_different_deliveries(notices: Notices, receiver: Receiver) -> None:
    """Who claims while another's claim is not committed yet waits for nobody and gets the next ones."""
    notices.webhook(receiver.url)
    for _ in range(4):
        notices.ended()
    with unit_of_work() as first, unit_of_work() as second:
        made = [{one.event_id for one in parcels.claim(work, most=2)} for work in (first, second)]
    assert [len(one) for one in made] == [2, 2]
    assert made[0].isdisjoint(made[1])


@pytest.mark.thorough
def test_slow_receivers_delay_nobody(notices: Notices, receiver: Receiver) -> None:
    """One customer's receiver answers nothing until all that another is owed has arrived: it does, in time for both."""
    with unit_of_work() as work:
        other = accounts.open_account(work, "other").id
        accounts.get(work, other).open_batches_max = 100
    left, arrived = iter(range(5, -1, -1)), threading.Event()

    def slow(got: Got) -> int:
        if "slow" in got.path:
            arrived.wait(20)
        elif next(left) == 0:
            arrived.set()
        return 200

    receiver.answer = slow
    notices.webhook(receiver.url.replace("hooks", "slow"))
    for _ in range(2 * delivering.AT_ONCE):
        notices.ended()
    notices.webhook(receiver.url, account_id=other)
    notices.bench.account_id = other
    for _ in range(6):
        notices.ended()
    notices.sender = Sender(LOOPBACK, seconds_max=15)
    assert notices.deliver() == 2 * delivering.AT_ONCE + 6
    assert {(one.attempts, one.last_error) for one in notices.deliveries()} == {(1, None)}


def test_a_receiver_that_hangs_is_cut_off(notices: Notices, receiver: Receiver) -> None:
    """After the deadline of the whole attempt it is a failure like any other."""
    hanging = threading.Event()
    receiver.answer = lambda _: 200 if hanging.wait(20) else 500
    notices.webhook(receiver.url)
    notices.ended()
    notices.sender = Sender(LOOPBACK, seconds_max=0.3)
    began = time.monotonic()
    try:
        assert notices.deliver() == 1
    finally:
        hanging.set()
    assert time.monotonic() - began < 10
    assert [one.last_error for one in notices.deliveries()] == ["timeout"]


@pytest.mark.parametrize(
    ("url", "networks", "error"),
    [
        ("http://127.0.0.1:9/", "", "address_refused"),
        ("http://127.0.0.1:9/", LOOPBACK, "unreachable"),
        ("http://no-such-host.invalid/", LOOPBACK, "host_not_found"),
        ("https://127.0.0.1:{port}/", LOOPBACK, "tls_error"),
    ],
)
def test_why_nothing_arrived_is_noted_in_a_word(
    notices: Notices, receiver: Receiver, url: str, networks: str, error: str
) -> None:
    """Each way to fail has its name in the delivery, and another attempt is due; no text of the other side is kept."""
    notices.sender = Sender(
        networks, look=lambda host, port: () if "no-such" in host else addresses.lookup(host, port)
    )
    notices.webhook(url.replace("{port}", str(receiver.port)))
    notices.ended()
    assert notices.deliver() == 1
    (one,) = notices.deliveries()
    assert (one.last_status, one.last_error) == (None, error)
    assert one.due_at


def test_a_redirect_is_a_failure(notices: Notices, receiver: Receiver) -> None:
    """Nothing is sent to where a receiver points: that could be anywhere."""
    receiver.answer = lambda _: 307
    notices.webhook(receiver.url)
    notices.ended()
    notices.deliver()
    assert [got.path for got in receiver.got] == ["/hooks?key=hidden"]
    assert [one.last_status for one in notices.deliveries()] == [307]


def test_the_address_that_was_checked_is_the_one_that_is_used(notices: Notices, receiver: Receiver) -> None:
    """A name is looked up once an attempt, and a name that moves to a private address later is refused then."""
    looks: list[str] = []

    def rebinding(host: str, port: int) -> tuple[str, ...]:
        looks.append(host)
        return ("127.0.0.1",) if len(looks) == 1 else ("10.0.0.1",)

    notices.sender = Sender(LOOPBACK, look=rebinding)
    notices.webhook(f"http://hooks.example.com:{receiver.port}/")
    notices.ended()
    notices.deliver()
    assert [got.headers["host"] for got in receiver.got] == [f"hooks.example.com:{receiver.port}"]
    assert looks == ["hooks.example.com"]
    notices.ended()
    notices.deliver()
    assert len(looks) == 2
    assert [one.last_error for one in notices.deliveries()] == [None, "address_refused"]


def test_a_webhook_that_is_deleted_meanwhile_holds_up_nothing(notices: Notices, receiver: Receiver) -> None:
    """Its deliveries go with it, and the outcome of one on its way is dropped."""
    webhook = notices.webhook(receiver.url)
    notices.ended()
    with unit_of_work() as work:
        (parcel,) = parcels.claim(work, most=1)
    with unit_of_work() as work:
        webhooks.delete(work, webhooks.get(work, webhook.account_id, webhook.id, lock=True), actor="token:t")
    with unit_of_work() as work:
        parcels.note(work, parcel, Outcome(status=200))
    assert notices.deliveries() == []
    notices.ended()


def test_a_late_failure_does_not_undo_an_arrival(notices: Notices, receiver: Receiver) -> None:
    """Of two that sent the same event, the one that arrived decides."""
    notices.webhook(receiver.url)
    notices.ended()
    made = []
    for _ in range(2):
        with unit_of_work() as work:
            made += parcels.claim(work, most=1)
        notices.clock.advance(seconds=parcels.CLAIM_SECONDS)
    for parcel, outcome in zip(reversed(made), (Outcome(status=200), Outcome(error="timeout")), strict=True):
        with unit_of_work() as work:
            parcels.note(work, parcel, outcome)
    (one,) = notices.deliveries()
    assert (one.due_at, one.last_error) == (None, None)
    assert one.delivered_at


def test_no_secret_and_no_address_is_logged(
    notices: Notices, receiver: Receiver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when sending breaks in a way that nobody thought of: the log has ids and the kind of error."""

    async def broken(_: Sender, parcel: parcels.Parcel) -> Outcome:
        raise ValueError(parcel.url, parcel.headers)

    webhook = notices.webhook(receiver.url)
    notices.ended()
    monkeypatch.setattr(Sender, "send", broken)
    with caplog.at_level(logging.DEBUG):
        notices.deliver()
    assert f"Webhook {webhook.id} failed with ValueError" in caplog.text
    assert "hidden" not in caplog.text
    assert webhook.secret not in caplog.text
    (one,) = notices.deliveries()
    assert (one.attempts, one.claimed_until, one.last_error) == (1, None, "unreachable")
    assert one.due_at
    assert "v1," not in caplog.text


def test_old_deliveries_are_forgotten(notices: Notices, receiver: Receiver) -> None:
    """After 30 days they are deleted, and not a day before."""
    notices.webhook(receiver.url)
    notices.ended()
    notices.deliver()
    for days, gone in ((limits.WEBHOOK_KEEP_DAYS, 0), (1, 1)):
        notices.clock.advance(days=days)
        with unit_of_work() as work:
            assert parcels.forget(work) == gone


def test_nothing_is_sent_inside_a_transaction(notices: Notices, receiver: Receiver) -> None:
    """While a request is on its way no connection of ours is out of the pool."""
    out: list[int] = []

    def look(_: Got) -> int:
        out.append(works.app_engine().pool.checkedout())  # type: ignore[attr-defined]  # a queue pool counts
        return 200

    receiver.answer = look
    notices.webhook(receiver.url)
    notices.ended()
    notices.deliver()
    assert out == [0]
