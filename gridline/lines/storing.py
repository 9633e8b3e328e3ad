"""Lines that ask for what outlives them: a response that is kept, runs in the background, or goes on from a kept one."""

from typing import Any

from gridline.lines.errors import StoringDenied
from gridline.lines.fields import Fields

KEYS = frozenset({"store", "background", "previous_response_id", "conversation"})
_FLAGS = ("store", "background")


def asked(values: dict[str, Any]) -> str | None:
    """The first key by which a body asks for it; None where it does not, as with false and null.

    Raises:
        LineRefused: a key has a value of the wrong type.
    """
    if KEYS.isdisjoint(values):
        return None
    body = Fields(values, "body")
    wanted = (
        key
        for key in values
        if key in KEYS and (body.flag(key) if key in _FLAGS else values[key] is not None)
    )
    return next(wanted, None)


def refuse(body: Fields) -> None:
    """Refuse a body that asks for it.

    Raises:
        LineRefused: it does.
    """
    key = asked(body.values)
    if key is not None:
        body.refuse(key, f"Unsupported parameter: '{key}' is not supported in the Batch API.")


def denied(key: str) -> StoringDenied:
    """Why the line alone fails, and what to do."""
    return StoringDenied(
        f"Stored responses are not available in batches, and this request sets '{key}': a batch keeps nothing but its "
        "result files, and there is no other place here to send the request to. Leave the key out, put the whole "
        "conversation into the request, and send it in another batch. The other requests of this batch are not affected.",
        param=key,
    )
