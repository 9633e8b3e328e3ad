"""What a messages line may say: Anthropic's keys and ranges, and the body that the engine is sent."""

from typing import Any

from gridline.lines import storing
from gridline.lines.card import Card
from gridline.lines.chat import ChatRequest
from gridline.lines.conversation import messages_of, role_of, stops_of, text_of
from gridline.lines.errors import LineRefused
from gridline.lines.fields import Fields, kind_of
from gridline.lines.schema_judge import SchemaJudge

ALLOWED = frozenset(
    {
        "model",
        "messages",
        "max_tokens",
        "system",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "metadata",
        "stream",
        "store",
    }
)
ROLES = {"user": "user", "assistant": "assistant"}
TOP_K_MAX = 2**31 - 1


def read_message(values: dict[str, Any], card: Card, _judge: SchemaJudge) -> ChatRequest:
    """The request that this body makes of this model.

    Raises:
        LineRefused: the first rule that the body breaks.
    """
    body = Fields(values, "body")
    body.not_streamed("Messages")
    storing.refuse(body)
    body.only(ALLOWED)
    most = body.integer("max_tokens", 1, card.output_tokens_max)
    if most is None:
        raise LineRefused(
            f"Max_tokens parameter is required: from 1 to {card.output_tokens_max} for this model.",
            param=body.param("max_tokens"),
        )
    messages = _messages(body)
    clean: dict[str, Any] = {"model": card.id, "messages": messages}
    system = None if values.get("system") is None else text_of(body, "system")
    if system:
        clean["system"] = system
    clean |= {key: one for key, one in _settings(body).items() if one is not None}
    # The conversation that the engine makes of it.
    told = [{"role": "system", "content": system}] if system else []
    return ChatRequest(clean, [*told, *messages], most)


def _settings(body: Fields) -> dict[str, Any]:
    """What else the engine is sent, None where it was left out."""
    _check_metadata(body)
    # An empty list is how clients say none.
    stops = body.values.get("stop_sequences") not in (None, [])
    return {
        "temperature": body.number("temperature", 0, 1),
        "top_p": body.number("top_p", 0, 1, low_included=False),
        "top_k": body.integer("top_k", 0, TOP_K_MAX),
        "stop_sequences": stops_of(body, "stop_sequences", one_alone=False) if stops else None,
    }


def _check_metadata(body: Fields) -> None:
    """Who asked: accepted and not passed on, because nothing here acts on it."""
    value = body.values.get("metadata")
    if value is None:
        return
    if type(value) is not dict:
        body.wrong_type("metadata", "an object")
    metadata = Fields(value, body.param("metadata"))
    metadata.only(frozenset({"user_id"}))
    metadata.text("user_id")


def _messages(body: Fields) -> list[dict[str, str]]:
    """The conversation, each content one text; the customer's side has the last word."""
    if body.values.get("messages") is None:
        raise LineRefused("Messages parameter is required.", param=body.param("messages"))
    messages = [_message(one) for one in messages_of(body, "messages")]
    if messages[-1]["role"] != "user":
        body.refuse(
            "messages",
            "Invalid 'messages': the last one must be the user's. To begin the answer for the model is not supported.",
        )
    return messages


def _message(message: Fields) -> dict[str, str]:
    message.only(frozenset({"role", "content"}))
    clean = {"role": role_of(message, ROLES), "content": text_of(message, "content")}
    if not clean["content"]:
        got = kind_of(message.values["content"])
        message.refuse("content", f"Invalid 'content': it is {got} without any text.")
    return clean
