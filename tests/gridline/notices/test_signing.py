"""What is signed is what OpenAI's SDK verifies: a real event from a real receiver, also while a secret is rotated."""

import base64
import json
import time

import openai
import pytest

from gridline import limits
from gridline.batches.states import Status
from gridline.db.work import unit_of_work
from gridline.notices import outbox, signing, webhooks
from gridline.notices.tables import Webhook
from tests.gridline.notices.conftest import Notices
from tests.gridline.notices.receiver import Got, Receiver


@pytest.fixture
def sdk(notices: Notices, monkeypatch: pytest.MonkeyPatch) -> openai.OpenAI:
    """The real SDK, at the test's time."""
    monkeypatch.setattr(time, "time", lambda: notices.clock.now().timestamp())
    return openai.OpenAI(api_key="unused", base_url="http://127.0.0.1:9")


def secret_of(webhook: Webhook) -> str:
    """What a webhook signs with now."""
    with unit_of_work() as work:
        return webhooks.get(work, webhook.account_id, webhook.id).secret


def last(notices: Notices, receiver: Receiver, status: Status = Status.FAILED) -> Got:
    """What arrived of a batch that ends now."""
    notices.ended(status)
    notices.deliver()
    return receiver.got[-1]


def test_the_sdk_unwraps_a_delivered_event(notices: Notices, receiver: Receiver, sdk: openai.OpenAI) -> None:
    """The unmodified SDK verifies headers and body and gives its own type of event."""
    webhook = notices.webhook(receiver.url)
    got = last(notices, receiver)
    event = sdk.webhooks.unwrap(got.body, got.headers, secret=webhook.secret)
    assert type(event).__name__ == "BatchFailedWebhookEvent"
    assert event.type == "batch.failed"
    assert event.id == got.event_id
    assert event.data.id.startswith("batch_")


def test_the_sdk_unwraps_a_test_event(notices: Notices, receiver: Receiver, sdk: openai.OpenAI) -> None:
    """A type that the SDK does not know verifies all the same."""
    webhook = notices.webhook(receiver.url)
    with unit_of_work() as work:
        outbox.owe_test(work, webhooks.get(work, webhook.account_id, webhook.id))
    notices.deliver()
    (got,) = receiver.got
    sdk.webhooks.unwrap(got.body, got.headers, secret=webhook.secret)
    assert json.loads(got.body)["data"] == {"id": webhook.id}


def test_a_changed_body_a_foreign_secret_and_an_old_stamp_are_refused(
    notices: Notices, receiver: Receiver, sdk: openai.OpenAI
) -> None:
    """The signature covers id, time and body; each retry is stamped anew."""
    webhook = notices.webhook(receiver.url)
    receiver.answer = lambda _: 500
    first = last(notices, receiver)
    refused = openai.InvalidWebhookSignatureError
    with pytest.raises(refused):
        sdk.webhooks.unwrap(first.body + b" ", first.headers, secret=webhook.secret)
    with pytest.raises(refused):
        sdk.webhooks.unwrap(first.body, first.headers, secret=signing.new_secret())
    notices.clock.advance(minutes=6)
    with pytest.raises(refused):
        sdk.webhooks.unwrap(first.body, first.headers, secret=webhook.secret)
    notices.deliver()
    again = receiver.got[-1]
    assert (again.body, again.event_id) == (first.body, first.event_id)
    sdk.webhooks.unwrap(again.body, again.headers, secret=webhook.secret)


def test_both_secrets_sign_for_a_day_after_a_rotation(
    notices: Notices, receiver: Receiver, sdk: openai.OpenAI
) -> None:
    """A receiver with either secret goes on; after 24 hours only the new one signs."""
    webhook = notices.webhook(receiver.url)
    old = webhook.secret
    with unit_of_work() as work:
        webhooks.rotate(work, webhooks.get(work, webhook.account_id, webhook.id, lock=True), actor="token:t")
    new = secret_of(webhook)
    assert new != old
    notices.clock.advance(hours=limits.WEBHOOK_OLD_SECRET_HOURS, seconds=-1)
    got = last(notices, receiver)
    for secret in (old, new):
        sdk.webhooks.unwrap(got.body, got.headers, secret=secret)
    notices.clock.advance(seconds=1)
    got = last(notices, receiver)
    sdk.webhooks.unwrap(got.body, got.headers, secret=new)
    with pytest.raises(openai.InvalidWebhookSignatureError):
        sdk.webhooks.unwrap(got.body, got.headers, secret=old)


def test_the_example_of_standard_webhooks_is_signed_as_the_standard_says() -> None:
    """The published example of the standard, to the letter."""
    shown = signing.headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
        keys=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    )
    assert shown["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_has_256_bits() -> None:
    """Thirty-two random bytes, never the same twice."""
    made = {signing.new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {len(base64.b64decode(one.removeprefix("whsec_"))) for one in made} == {32}
