"""What a chat completions line may say: OpenAI's keys and ranges, and the body that the engine is sent."""

from collections.abc import Callable
from typing import Any, NamedTuple

from gridline.limits import CHOICES_PER_LINE_MAX, TOP_LOGPROBS_MAX
from gridline.lines import storing
from gridline.lines.card import Card
from gridline.lines.conversation import messages_of, role_of, stops_of, text_of
from gridline.lines.errors import LineRefused
from gridline.lines.fields import Fields
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
PLAIN_ROLES = ("system", "user", "assistant")
INT64_MAX = 2**63 - 1
GREEDY_BELOW = 1e-5
"""Temperatures under this are greedy to the engine."""


class ChatRequest(NamedTuple):
    """A line for a chat model that keeps every rule."""

    body: dict[str, Any]
    """What the engine is sent, but for the most that it may write."""
    messages: list[dict[str, str]]
    """The conversation that the engine makes of it."""
    max_tokens: int | None
    """Tokens asked for per choice; None: as many as there is room for."""
    choices: int = 1
    most_key: str = "max_tokens"
    """The key under which the engine is told the most that it may write."""
    prompt_key: str = "messages"
    """The key that holds the conversation, for refusals."""


def read_chat(values: dict[str, Any], card: Card, judge: SchemaJudge) -> ChatRequest:
    """The request that this body makes of this model.

    Raises:
        LineRefused: the first rule that the body breaks.
        JudgeUnavailable: this machine cannot judge a schema.
    """
    body = Fields(values, "body")
    if "stream" in values or "store" in values:
        body.not_streamed()
        storing.refuse(body)
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


def _messages(body: Fields) -> list[dict[str, str]]:
    """The conversation, each content one text."""
    value = body.values.get("messages")
    if value is None:
        raise LineRefused("Messages parameter is required.", param=body.param("messages"))
    if type(value) is list and value and all(map(_is_plain, value)):
        return value
    return [_message(one) for one in messages_of(body, "messages")]


def _is_plain(value: object) -> bool:
    """Whether the message is what nearly every one is: a role that the engine knows, and a text."""
    return (
        type(value) is dict
        and len(value) == 2  # noqa: PLR2004 - and nothing else
        and value.get("role") in PLAIN_ROLES
        and type(value.get("content")) is str
    )


def _message(message: Fields) -> dict[str, str]:
    """One message of a text conversation."""
    message.only(frozenset({"role", "content", "name"}))
    clean = {"role": role_of(message), "content": text_of(message, "content")}
    name = message.text("name")
    return clean if name is None else {**clean, "name": name}


_READERS: dict[str, Callable[[Fields], Any]] = {
    "temperature": lambda body: body.number("temperature", 0, 2),
    "top_p": lambda body: body.number("top_p", 0, 1, low_included=False),
    "presence_penalty": lambda body: body.number("presence_penalty", -2, 2),
    "frequency_penalty": lambda body: body.number("frequency_penalty", -2, 2),
    "seed": lambda body: body.integer("seed", -INT64_MAX - 1, INT64_MAX),
    "stop": lambda body: stops_of(body, "stop", one_alone=True),
    "logprobs": lambda body: body.flag("logprobs"),
    "top_logprobs": _top_logprobs,
}
"""How each key is read that the engine is sent as it is."""
