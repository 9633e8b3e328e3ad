"""What a responses line may say: OpenAI's keys and ranges, and the body that the engine is sent."""

from typing import Any

from gridline.limits import METADATA_KEY_CHARS_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_CHARS_MAX
from gridline.lines import storing
from gridline.lines.card import Card
from gridline.lines.chat import ChatRequest
from gridline.lines.conversation import messages_of, role_of, text_of
from gridline.lines.errors import LineRefused
from gridline.lines.fields import Fields, shown
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.schemas import read_text_format

ALLOWED = frozenset(
    {
        "model",
        "input",
        "instructions",
        "max_output_tokens",
        "temperature",
        "top_p",
        "text",
        "truncation",
        "metadata",
        "user",
        "stream",
    }
    | storing.KEYS
)
MESSAGE_KEYS = frozenset({"type", "role", "content", "id", "status"})
"""Of a message: the last two come with an earlier answer that is sent along, and change nothing."""
PARTS = {
    "input_text": frozenset({"type", "text"}),
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
}


def read_response(values: dict[str, Any], card: Card, judge: SchemaJudge) -> ChatRequest:
    """The request that this body makes of this model.

    Raises:
        LineRefused: the first rule that the body breaks.
        JudgeUnavailable: this machine cannot judge a schema.
    """
    body = Fields(values, "body")
    body.not_streamed("Responses")
    storing.refuse(body)
    body.only(ALLOWED)
    given = _input(body)
    instructions = body.text("instructions")
    clean: dict[str, Any] = {"model": card.id, "input": given, "store": False}
    if instructions:
        clean["instructions"] = instructions
    clean |= {key: one for key, one in _settings(body, judge).items() if one is not None}
    # The conversation that the engine makes of it: what it is told first, then what it is asked.
    told = [{"role": "system", "content": instructions}] if instructions else []
    asked = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = [*told, *({"role": one["role"], "content": one["content"]} for one in asked)]
    most = body.integer("max_output_tokens", 1, card.output_tokens_max)
    return ChatRequest(clean, messages, most, most_key="max_output_tokens", prompt_key="input")


def _settings(body: Fields, judge: SchemaJudge) -> dict[str, Any]:
    """What else the engine is sent, None where it was left out."""
    if body.text("truncation") not in (None, "disabled"):
        body.refuse(
            "truncation", "Invalid 'truncation': expected disabled. A prompt that is too long is an error."
        )
    return {
        "temperature": body.number("temperature", 0, 2),
        "top_p": body.number("top_p", 0, 1, low_included=False),
        "text": _text(body, judge),
        "metadata": _metadata(body),
        "user": body.text("user"),
    }


def _text(body: Fields, judge: SchemaJudge) -> dict[str, Any] | None:
    value = body.values.get("text")
    if value is None:
        return None
    if type(value) is not dict:
        body.wrong_type("text", "an object")
    text = Fields(value, body.param("text"))
    text.only(frozenset({"format"}))
    form = read_text_format(text, judge)
    return None if form is None else {"format": form}


def _metadata(body: Fields) -> dict[str, str] | None:
    """Pairs of texts that the answer repeats."""
    value = body.values.get("metadata")
    if value is None:
        return None
    if type(value) is not dict:
        body.wrong_type("metadata", "an object")
    short = all(
        type(text) is str and len(key) <= METADATA_KEY_CHARS_MAX and len(text) <= METADATA_VALUE_CHARS_MAX
        for key, text in value.items()
    )
    if len(value) > METADATA_PAIRS_MAX or not short:
        body.refuse(
            "metadata",
            f"Invalid 'metadata': expected at most {METADATA_PAIRS_MAX} pairs, keys of at most {METADATA_KEY_CHARS_MAX} "
            f"and texts of at most {METADATA_VALUE_CHARS_MAX} characters.",
        )
    pairs: dict[str, str] = value
    return pairs


def _input(body: Fields) -> str | list[dict[str, str]]:
    """A text, or the conversation with each content one text."""
    value = body.values.get("input")
    if value is None:
        raise LineRefused("Input parameter is required.", param=body.param("input"))
    if type(value) is not str:
        return [_message(one) for one in messages_of(body, "input")]
    if not value:
        body.refuse("input", "Invalid 'input': it is empty.")
    return value


def _message(message: Fields) -> dict[str, str]:
    """One message of a text conversation: other items (calls, reasoning, references) are refused."""
    kind = message.values.get("type")
    if kind not in (None, "message"):
        message.refuse(
            "type", f"Invalid 'type': only messages can be sent in a batch, but got {shown(kind)} instead."
        )
    message.only(MESSAGE_KEYS)
    message.text("id")
    message.text("status")
    return {"type": "message", "role": role_of(message), "content": text_of(message, "content", PARTS)}
