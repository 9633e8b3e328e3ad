"""What the endpoints of chat models have in common: texts in pieces, messages, and texts that end an answer."""

from typing import Any

from gridline.limits import STOP_SEQUENCES_MAX
from gridline.lines.errors import LineRefused
from gridline.lines.fields import Fields, kind_of, shown

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
"""Accepted role to the role that the engine is sent: chat templates pass over a developer silently."""
TEXT_PARTS = {"text": frozenset({"type", "text"})}
"""Kinds of pieces that are text, and the keys that each may have."""


def text_of(message: Fields, key: str, parts: dict[str, frozenset[str]] = TEXT_PARTS) -> str:
    """The text under a key; pieces are joined as the engine joins them, so that what is counted is what runs.

    Raises:
        LineRefused: it is neither a text nor pieces of these kinds.
    """
    value = message.values.get(key)
    if type(value) is str:
        return value
    if type(value) is not list or not value:
        got = "an empty array" if value == [] else kind_of(value)
        message.refuse(key, f"Invalid '{key}': expected a string or text parts, but got {got} instead.")
    texts = []
    for part in value:
        kind = part.get("type") if type(part) is dict else kind_of(part)
        allowed = parts.get(kind) if type(kind) is str else None
        if allowed is None or part.keys() - allowed or type(part.get("text")) is not str:
            message.refuse(key, f"Content parts must be text, but got {shown(kind)} instead.")
        texts.append(part["text"])
    return "\n".join(texts)


def role_of(message: Fields, roles: dict[str, str] = ROLES) -> str:
    """Who speaks, as the engine is told.

    Raises:
        LineRefused: none of these roles.
    """
    given = message.text("role")
    if given not in roles:
        message.refuse(
            "role", f"Invalid 'role': expected {', '.join(roles)}, but got {shown(given)} instead."
        )
    return roles[given]


def messages_of(body: Fields, key: str) -> list[Fields]:
    """The objects of an array of messages, at least one.

    Raises:
        LineRefused: it is no array, is empty, or holds something else.
    """
    value: Any = body.values[key]
    if type(value) is not list:
        body.wrong_type(key, "an array")
    if not value:
        body.refuse(key, f"Invalid '{key}': expected at least one message, but got an empty array.")
    return [_message(one, f"{body.param(key)}[{index}]") for index, one in enumerate(value)]


def _message(value: object, path: str) -> Fields:
    if type(value) is not dict:
        raise LineRefused(
            f"Invalid message: expected an object, but got {kind_of(value)} instead.", param=path
        )
    return Fields(value, path)


def stops_of(body: Fields, key: str, *, one_alone: bool) -> list[str]:
    """One to four texts, none of them empty; ``one_alone``: a text that is in no array will do.

    Raises:
        LineRefused: anything else.
    """
    value = body.values[key]
    if one_alone and type(value) is str:
        value = [value]
    if type(value) is not list:
        body.wrong_type(key, "a string or an array of strings" if one_alone else "an array of strings")
    if not 1 <= len(value) <= STOP_SEQUENCES_MAX:
        body.refuse(
            key,
            f"Invalid '{key}': expected 1 to {STOP_SEQUENCES_MAX} strings, but got {len(value)} instead.",
        )
    if any(type(stop) is not str or not stop for stop in value):
        body.refuse(key, f"Invalid '{key}': every stop sequence must be a string that is not empty.")
    stops: list[str] = value
    return stops
