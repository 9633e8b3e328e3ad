"""What the calls about webhooks and messages take and give."""

from api.reference.shapes import (
    Schema,
    choice,
    constant,
    empty,
    flag,
    identity,
    listed,
    moment,
    page,
    request,
    text,
    thing,
    whole,
)
from gridline import limits
from gridline.notices.outbox import ENDS, TEST

CREATED = 1767614400
URL = "https://example.com/hooks"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="  # noqa: S105 - an example


def schemas() -> dict[str, Schema]:
    """Components by name."""
    secret = text("What signs; shown only here. Give it to the receiver.", SECRET, pattern="^whsec_")
    return {
        "WebhookCreate": request(
            "An address to tell of ended batches.",
            {"url": _url(), "events": _events("What it hears of; by default every end.")},
            required=("url",),
        ),
        "WebhookUpdate": request(
            "What to change; what is left out stays.",
            {
                "url": _url(),
                "events": _events("What it hears of."),
                "disabled": flag("Whether it gets nothing for now.", example=False),
            },
            required=(),
        ),
        "Webhook": thing("An address that hears of ended batches.", _webhook()),
        "WebhookWithSecret": thing("A webhook with its new secret.", {**_webhook(), "secret": secret}),
        "WebhookList": page("Webhook"),
        "DeletedWebhook": thing(
            "That it is gone.",
            {
                "id": identity("webhook", "What was deleted."),
                "object": constant("gridline.webhook", "Always `gridline.webhook`."),
                "deleted": constant(True, "Always true."),
            },
        ),
        "WebhookDelivery": _delivery(),
        "WebhookDeliveryList": page("WebhookDelivery"),
        **_mails(),
        "MessageCreate": request(
            "What the operator should know.",
            {
                "text": text(
                    "The words.",
                    "Why did this batch expire?",
                    minLength=1,
                    maxLength=limits.MESSAGE_CHARS_MAX,
                ),
                "batch_id": identity("batch", "The batch that it is about."),
            },
            required=("text",),
        ),
        "Message": thing(
            "A message that is stored.",
            {
                "id": identity("message", "The message's id."),
                "object": constant("gridline.message", "Always `gridline.message`."),
                "created_at": moment("When it was stored.", CREATED),
                "batch_id": empty(identity("batch", "The batch that it is about.")),
                "text": text("The words.", "Why did this batch expire?"),
            },
        ),
    }


def _mails() -> dict[str, Schema]:
    return {
        "MailCode": request(
            "The code that was mailed.", {"code": text("Eight digits.", "01234567")}, required=("code",)
        ),
        "MailNotices": thing(
            "Whether batches' ends are mailed to the signed-in user.",
            {
                "object": constant("gridline.mail_notices", "Always `gridline.mail_notices`."),
                "email": text("The address.", "ann@example.com"),
                "state": choice(
                    "`unconfirmed`: a code was mailed and has not come back.", ("off", "unconfirmed", "on")
                ),
            },
        ),
    }


def _url() -> Schema:
    return text(
        "An http or https address on the public internet.", URL, maxLength=limits.WEBHOOK_URL_CHARS_MAX
    )


def _events(meaning: str) -> Schema:
    return listed(choice("An end of a batch.", ENDS), meaning, least=1)


def _webhook() -> dict[str, Schema]:
    return {
        "id": identity("webhook", "The webhook's id."),
        "object": constant("gridline.webhook", "Always `gridline.webhook`."),
        "created_at": moment("When it was created.", CREATED),
        "url": text("Where events are sent.", URL),
        "events": listed(choice("An end of a batch.", ENDS), "What it hears of."),
        "disabled": flag("Whether it gets nothing for now.", example=False),
        "disabled_at": empty(moment("Since when it is disabled.", CREATED)),
        "disabled_reason": empty(
            text(
                "Why: `disabled_by_customer`; `failing`, because nothing could be delivered for days; or "
                "`disabled_by_operator:` and the operator's words.",
                "failing",
            )
        ),
        "failing_since": empty(moment("Since when nothing could be delivered.", CREATED)),
        "old_secret_until": empty(moment("Until when the secret before signs, too.", CREATED)),
    }


def _delivery() -> Schema:
    return thing(
        "One event for one webhook, and what came of it.",
        {
            "id": identity("event", "The event's id: the same for every attempt, sent as `webhook-id`."),
            "object": constant("gridline.webhook.delivery", "Always `gridline.webhook.delivery`."),
            "created_at": moment("When the event happened.", CREATED),
            "type": choice("What happened.", (*ENDS, TEST)),
            "data": thing(
                "What it is about.",
                {
                    "id": identity("batch", "The batch; for a test the webhook.")
                    | {"pattern": "^(batch|whk)_"}
                },
            ),
            "state": choice("What became of it.", ("pending", "delivered", "given_up"), "delivered"),
            "attempts": whole("How often it was sent.", 1),
            "last_attempt_at": moment("When it was sent last.", CREATED) | {"type": ["integer", "null"]},
            "last_status": whole("The receiver's last HTTP status.", 200) | {"type": ["integer", "null"]},
            "last_error": empty(
                text(
                    "Why there is no status: `timeout`, `unreachable`, `tls_error`, `host_not_found`, `address_refused`.",
                    "timeout",
                )
            ),
            "next_attempt_at": empty(moment("When it is sent next; null when it is over.", CREATED)),
            "delivered_at": moment("When it arrived.", CREATED) | {"type": ["integer", "null"]},
        },
    )
