"""What the bodies about webhooks and messages may hold. Knows neither HTTP nor the database."""

from dataclasses import dataclass

from gridline import limits
from gridline.errors import InvalidRequest
from gridline.fields import array_of, bounded, keys_of, one_of, text_of, wrong_type
from gridline.notices.outbox import ENDS

MESSAGE_KEYS = ("text", "batch_id")


@dataclass(frozen=True)
class WebhookRequest:
    """A webhook to make, or what to change of one: None leaves a thing as it is. The URL's host is not looked up yet."""

    url: str | None = None
    events: tuple[str, ...] | None = None
    disabled: bool | None = None


@dataclass(frozen=True)
class MessageRequest:
    """A message to the operator, about a batch or about none."""

    text: str
    batch_id: str | None = None


def parse_create(body: object) -> WebhookRequest:
    """The webhook that a JSON body asks for; without ``events`` it hears of every end.

    Raises:
        InvalidRequest: naming the first parameter that is missing, unknown, of the wrong type or out of range.
    """
    given = keys_of(body, known=("url", "events"), required=("url",))
    return WebhookRequest(_url(given["url"]), _events(given.get("events")) or ENDS)


def parse_update(body: object) -> WebhookRequest:
    """What a JSON body changes of a webhook; null counts as absent.

    Raises:
        InvalidRequest: as above.
    """
    given = keys_of(body, known=("url", "events", "disabled"), required=())
    url, disabled = given.get("url"), given.get("disabled")
    if disabled is not None and not isinstance(disabled, bool):
        raise wrong_type("disabled", "a boolean", disabled)
    return WebhookRequest(None if url is None else _url(url), _events(given.get("events")), disabled)


def parse_message(body: object) -> MessageRequest:
    """The message that a JSON body brings.

    Raises:
        InvalidRequest: as above, or the text is blank.
    """
    given = keys_of(body, known=MESSAGE_KEYS, required=MESSAGE_KEYS[:1])
    text = bounded(text_of(given["text"], "text"), limits.MESSAGE_CHARS_MAX, "text")
    if not text.strip():
        raise InvalidRequest(
            "Invalid 'text': it is blank. Say what the operator should know.",
            code="invalid_value",
            param="text",
        )
    batch_id = given.get("batch_id")
    return MessageRequest(text, None if batch_id is None else text_of(batch_id, "batch_id"))


def _url(value: object) -> str:
    return bounded(text_of(value, "url"), limits.WEBHOOK_URL_CHARS_MAX, "url")


def _events(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    wanted = {one_of(one, ENDS, f"events[{number}]") for number, one in enumerate(array_of(value, "events"))}
    if not wanted:
        raise InvalidRequest(
            f"Invalid 'events': it is empty. Name at least one of {', '.join(ENDS)}, or leave it out for all.",
            code="empty_array",
            param="events",
        )
    return tuple(one for one in ENDS if one in wanted)
