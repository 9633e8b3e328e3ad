"""Messages bodies: the allow-list, Anthropic's ranges, what the engine is sent, and what is counted."""

from typing import Any

import pytest

from gridline.lines.chat import ChatRequest
from gridline.lines.errors import LineRefused
from gridline.lines.messages import read_message
from gridline.lines.schema_judge import SchemaJudge
from gridline.storage.objects import Store

from .conftest import BATCH, CARDS, MESSAGES, Check
from .stored_bodies import stored_bodies

CARD = CARDS["tiny-chat"]
USER = {"role": "user", "content": "Hi"}


def body(**over: Any) -> dict[str, Any]:
    """A good body, with keys replaced."""
    return {"model": "tiny-chat", "messages": [USER], "max_tokens": 8, **over}


def read(**over: Any) -> ChatRequest:
    """Read a good body with these keys replaced."""
    return read_message(body(**over), CARD, SchemaJudge())


def refusal(**over: Any) -> LineRefused:
    """The refusal of a body."""
    with pytest.raises(LineRefused) as caught:
        read(**over)
    return caught.value


def line(custom_id: str, **over: Any) -> dict[str, Any]:
    """A messages line."""
    return {"custom_id": custom_id, "method": "POST", "url": MESSAGES, "body": body(**over)}


def test_a_plain_body() -> None:
    """It goes to the engine as it is; null keys and an empty list of stops are not sent."""
    request = read(system=None, temperature=None, stop_sequences=[], metadata={"user_id": "u"}, stream=False)
    assert request == ChatRequest({"model": "tiny-chat", "messages": [USER]}, [USER], 8)


def test_the_system_prompt_comes_first() -> None:
    """It may come in pieces, and is counted where the engine puts it; an empty one is no message."""
    pieces = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "In French."}]
    request = read(system=pieces)
    assert request.body["system"] == "Be brief.\nIn French."
    assert request.messages == [{"role": "system", "content": "Be brief.\nIn French."}, USER]
    assert read(system="").messages == [USER]


def test_settings_are_passed_on() -> None:
    """Anthropic's own settings, ends of ranges included."""
    given = {"temperature": 1, "top_p": 0.9, "top_k": 40, "stop_sequences": ["a", "b", "c", "d"]}
    sent = read(**given).body
    assert {key: sent[key] for key in given} == given


def test_max_tokens_is_required() -> None:
    """As Anthropic has it, and the message says what it may be."""
    with pytest.raises(LineRefused, match="1 to 1024") as caught:
        read_message({"model": "tiny-chat", "messages": [USER]}, CARD, SchemaJudge())
    assert caught.value.param == "body.max_tokens"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, 1) for key in ("tools", "tool_choice", "thinking", "n", "seed", "response_format", "stop")),
        *((key, 1) for key in ("output_config", "cache_salt", "chat_template_kwargs", "service_tier")),
        ("max_tokens", 0),
        ("max_tokens", 1025),
        ("temperature", 1.1),
        ("top_p", 0),
        ("top_k", -1),
        ("stop_sequences", "a"),
        ("stop_sequences", 0),
        ("stop_sequences", ["a"] * 5),
        ("stop_sequences", [""]),
        ("system", 7),
        ("system", []),
        ("metadata", "u"),
        ("store", True),
        ("messages", []),
        ("messages", None),
        ("messages", [USER, {"role": "assistant", "content": "Sure,"}]),
    ],
)
def test_anything_else_is_refused_by_name(key: str, value: object) -> None:
    """Keys outside the list, values outside the ranges, and a begun answer fail the file, and the message names the key."""
    assert refusal(**{key: value}).param == f"body.{key}"


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "system", "content": "x"}, "role"),
        ({"role": "user", "content": ""}, "content"),
        ({"role": "user", "content": [{"type": "image", "source": {}}]}, "content"),
        ({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}, "content"),
        ({"role": "user", "content": "x", "name": "Ann"}, "name"),
    ],
)
def test_messages_that_are_no_text_are_refused(message: object, param: str) -> None:
    """Pictures, empty texts and system messages inside the conversation are never dropped silently."""
    assert refusal(messages=[message, USER]).param == f"body.messages[0].{param}"


def test_unknown_metadata_and_streams_are_refused() -> None:
    """Who asked may be said; streaming gets the code that clients know."""
    assert refusal(metadata={"team": "a"}).param == "body.metadata.team"
    assert refusal(stream=True).code == "streaming_unsupported"


def test_a_file_of_messages(check: Check, store: Store) -> None:
    """Lines are counted as conversations, and what they may write is what they ask for."""
    checked = check(line("plain"), line("told", system="Be kind"), endpoint=MESSAGES)
    assert (checked.errors, checked.refused) == ((), 0)
    assert [one["max_tokens"] for one in stored_bodies(store, BATCH)] == [8, 8]
    # u:Hi;a: and s:Be kind; before it, one token a byte.
    assert checked.input_tokens == 7 + 17
    assert checked.ceiling_nanos == checked.input_tokens * 10 + 16 * 20
