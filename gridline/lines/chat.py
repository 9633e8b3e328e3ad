"""What a chat completions line may say: OpenAI's keys and ranges, and the body that the engine is sent."""

from collections.abc import Callable
from typing import Any, NamedTuple

from gridline.limits import CHOICES_PER_LINE_MAX, STOP_SEQUENCES_MAX, TOP_LOGPROBS_MAX
from gridline.lines.card import Card
from gridline.lines.errors import LineRefused
from gridline.lines.fields import Fields, kind_of, shown
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.schemas import read_response_format

ALLOWED = frozenset(
    {
        "model",
        "messages",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "n",
        "stop",
        "presence_penalty",
        "frequency_penalty",
        "seed",
        "logprobs",
        "top_logprobs",
        "response_format",
        "user",
        "stream",
        "store",
    }
)
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
"""Accepted role to the role that the engine is sent: chat templates pass over a developer silently."""
PLAIN_ROLES = ("system", "user", "assistant")
INT64_MAX = 2**63 - 1
GREEDY_BELOW = 1e-5
"""Temperatures under this are greedy to the engine."""


class ChatRequest(NamedTuple):
    """A chat line that keeps every rule."""

    body: dict[str, Any]
    """What the engine is sent, but for max_tokens."""
    messages: list[dict[str, str]]
    max_tokens: int | None
    """Tokens asked for per choice; None: as many as there is room for."""
    choices: int


def read_chat(values: dict[str, Any], card: Card, judge: SchemaJudge) -> ChatRequest:
    """The request that this body makes of this model.

    Raises:
        LineRefused: the first rule that the body breaks.
        JudgeUnavailable: this machine cannot judge a schema.
    """
    body = Fields(values, "body")
    if "stream" in values or "store" in values:
        body.not_streamed_nor_stored()
    body.only(ALLOWED)
    messages = _messages(body)
    clean: dict[str, Any] = {"model": card.id, "messages": messages}
    # A file may have 50,000 lines, and most of them set few keys: only those that are there are looked at.
    for key, value in values.items():
        if key in _READERS and value is not None:
            clean[key] = _READERS[key](body)
    choices = 1
    if "n" in values or "user" in values or "response_format" in values:
        choices = _further(body, clean, judge)
    return ChatRequest(clean, messages, _max_tokens(body, card), choices)


def _further(body: Fields, clean: dict[str, Any], judge: SchemaJudge) -> int:
    """What few lines set: how many choices (which is returned), the form of the answer, and who asked."""
    body.text("user")  # Accepted and not passed on: nothing here acts on it.
    choices = body.integer("n", 1, CHOICES_PER_LINE_MAX) or 1
    if choices > 1:
        clean["n"] = choices
        if clean.get("temperature", 1) < GREEDY_BELOW:
            # The engine refuses several greedy choices, OpenAI does not. Its most likely token is the same answer.
            clean |= {"temperature": 1, "top_k": 1}
    if body.values.get("response_format") is not None:
        form = read_response_format(body, judge)
        if form is not None:
            clean["response_format"] = form
    return choices


def _max_tokens(body: Fields, card: Card) -> int | None:
    """The one number that both of OpenAI's names may carry."""
    old = body.integer("max_tokens", 1, card.output_tokens_max)
    if "max_completion_tokens" not in body.values:
        return old
    new = body.integer("max_completion_tokens", 1, card.output_tokens_max)
    if old is not None and new is not None and old != new:
        body.refuse(
            "max_completion_tokens", f"'max_tokens' is {old} and 'max_completion_tokens' {new}: send one."
        )
    return old if new is None else new


def _top_logprobs(body: Fields) -> int | None:
    """How many tokens beside the chosen one have their probability told."""
    top = body.integer("top_logprobs", 0, TOP_LOGPROBS_MAX)
    if not body.flag("logprobs"):
        body.refuse("top_logprobs", "'top_logprobs' needs 'logprobs' to be true.")
    return top


def _stop(body: Fields) -> list[str]:
    """One to four texts, none of them empty."""
    value = body.values["stop"]
    if type(value) not in {str, list}:
        body.wrong_type("stop", "a string or an array of strings")
    stops: list[str] = [value] if type(value) is str else value
    if not 1 <= len(stops) <= STOP_SEQUENCES_MAX:
        body.refuse(
            "stop",
            f"Invalid 'stop': expected 1 to {STOP_SEQUENCES_MAX} strings, but got {len(stops)} instead.",
        )
    if any(type(stop) is not str or not stop for stop in stops):
        body.refuse("stop", "Invalid 'stop': every stop sequence must be a string that is not empty.")
    return stops


def _messages(body: Fields) -> list[dict[str, str]]:
    """The conversation, each content one text."""
    value = body.values.get("messages")
    if value is None:
        raise LineRefused("Messages parameter is required.", param=body.param("messages"))
    if type(value) is not list:
        body.wrong_type("messages", "an array")
    if not value:
        body.refuse("messages", "Invalid 'messages': expected at least one message, but got an empty array.")
    return [one if _is_plain(one) else _message(one, index) for index, one in enumerate(value)]


def _is_plain(value: object) -> bool:
    """Whether the message is what nearly every one is: a role that the engine knows, and a text."""
    return (
        type(value) is dict
        and len(value) == 2  # noqa: PLR2004 - and nothing else
        and value.get("role") in PLAIN_ROLES
        and type(value.get("content")) is str
    )


def _message(value: object, index: int) -> dict[str, str]:
    """One message of a text conversation."""
    path = f"body.messages[{index}]"
    if type(value) is not dict:
        raise LineRefused(
            f"Invalid message: expected an object, but got {kind_of(value)} instead.", param=path
        )
    message = Fields(value, path)
    message.only(frozenset({"role", "content", "name"}))
    given = message.text("role")
    if given not in ROLES:
        message.refuse(
            "role", f"Invalid 'role': expected {', '.join(ROLES)}, but got {shown(given)} instead."
        )
    clean = {"role": ROLES[given], "content": _content(message)}
    name = message.text("name")
    return clean if name is None else {**clean, "name": name}


def _content(message: Fields) -> str:
    """The message's text; text parts are joined as the engine joins them, so that what is counted is what runs."""
    value = message.values.get("content")
    if type(value) is str:
        return value
    if type(value) is not list or not value:
        got = "an empty array" if value == [] else kind_of(value)
        message.refuse(
            "content", f"Invalid 'content': expected a string or text parts, but got {got} instead."
        )
    texts = []
    for part in value:
        kind = part.get("type") if type(part) is dict else kind_of(part)
        if kind != "text" or part.keys() - {"type", "text"} or type(part.get("text")) is not str:
            message.refuse("content", f"Content parts must be text, but got {shown(kind)} instead.")
        texts.append(part["text"])
    return "\n".join(texts)


_READERS: dict[str, Callable[[Fields], Any]] = {
    "temperature": lambda body: body.number("temperature", 0, 2),
    "top_p": lambda body: body.number("top_p", 0, 1, low_included=False),
    "presence_penalty": lambda body: body.number("presence_penalty", -2, 2),
    "frequency_penalty": lambda body: body.number("frequency_penalty", -2, 2),
    "seed": lambda body: body.integer("seed", -INT64_MAX - 1, INT64_MAX),
    "stop": _stop,
    "logprobs": lambda body: body.flag("logprobs"),
    "top_logprobs": _top_logprobs,
}
"""How each key is read that the engine is sent as it is."""
