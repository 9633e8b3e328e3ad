"""The headers of answers, and which answers carry them."""

from typing import Any

from api.reference.shapes import Schema, choice, identity, text, whole
from gridline import limits

_CALLS = limits.REQUESTS_PER_MINUTE_DEFAULT

ALWAYS = ("x-request-id", "openai-processing-ms", "X-Content-Type-Options")
"""On every answer."""
COUNTED = ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests")
"""On answers to a token that is known, while its calls can be counted."""
SOMETIMES = {*COUNTED, "Retry-After", "x-should-retry", "Idempotency-Replayed", "Content-Range"}
"""Where they help; all others are always there where they are listed."""

_SCHEMAS: dict[str, Schema] = {
    "x-request-id": identity("request", "The call's id: name it when you write to the operator."),
    "openai-processing-ms": whole("Milliseconds that the answer took.", 4),
    "X-Content-Type-Options": choice("The type is what it says.", ("nosniff",)),
    "x-ratelimit-limit-requests": whole("Calls that the account may make in a minute.", _CALLS),
    "x-ratelimit-remaining-requests": whole("Calls that are left of them now.", _CALLS - 1),
    "x-ratelimit-reset-requests": text("Until all of them are back.", "1s"),
    "Retry-After": whole(
        "Seconds after which trying again may help; never more than 60.", 2, least=1, most=60
    ),
    "x-should-retry": choice("`false`: trying again as it is cannot help. SDKs heed it.", ("false",)),
    "WWW-Authenticate": choice("How to say who you are.", ("Bearer",)),
    "Idempotency-Replayed": choice("The batch is the one that an earlier call made.", ("true",)),
    "Gridline-Next-Cursor": text("Where this page ends: send it as `after` to go on.", "AXK0wq8nZwAAAAM"),
    "Gridline-Incomplete": choice(
        "`false` once the batch has ended and nothing is left after this page.", ("true", "false")
    ),
    "Accept-Ranges": choice("Ranges are answered.", ("bytes",)),
    "ETag": text("The file's SHA-256, in quotes.", '"9f86d0…"'),
    "Content-Disposition": text("The file's name, for saving.", 'attachment; filename="requests.jsonl"'),
    "Content-Range": text("Which bytes these are, and of how many.", "bytes 0-1023/4096"),
    "Cache-Control": text("Whether it may be kept.", "private, no-store"),
}


def components() -> dict[str, dict[str, Any]]:
    """Headers by name."""
    return {
        name: {
            "description": schema["description"],
            "required": name not in SOMETIMES,
            "schema": {key: value for key, value in schema.items() if key not in ("description", "examples")},
            "example": schema["examples"][0],
        }
        for name, schema in _SCHEMAS.items()
    }


def of_refusal(status: int) -> tuple[str, ...]:
    """Headers that a refusal of this status carries beside those of every answer."""
    by_status = {
        401: ("WWW-Authenticate", "x-should-retry"),
        416: ("Content-Range", "x-should-retry"),
        429: (*COUNTED, "Retry-After", "x-should-retry"),
        500: (),
        503: ("Retry-After",),
    }
    return by_status.get(status, ("x-should-retry",))
