"""Lines that ask for stored responses: where the dialect says so each fails alone, on every endpoint."""

import json
from typing import Any

import pytest

from gridline.lines.partitions import read_ids
from gridline.lines.segments import read_rows
from gridline.storage import layout
from gridline.storage.objects import Store

from .conftest import BATCH, CHAT, EMBEDDINGS, MESSAGES, RESPONSES, Check

BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "tiny-chat", "messages": [{"role": "user", "content": "Hi"}]},
    RESPONSES: {"model": "tiny-chat", "input": "Hi"},
    MESSAGES: {"model": "tiny-chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8},
    EMBEDDINGS: {"model": "tiny-embed", "input": "w1"},
}
ASKS: tuple[dict[str, Any], ...] = (
    {"store": True},
    {"background": True},
    {"previous_response_id": "resp_1"},
    {"conversation": {"id": "conv_1"}},
)


def line(custom_id: str, endpoint: str, **more: Any) -> dict[str, Any]:
    """A good line of an endpoint with further keys."""
    return {
        "custom_id": custom_id,
        "method": "POST",
        "url": endpoint,
        "body": {**BODIES[endpoint], **more},
    }


@pytest.mark.parametrize("endpoint", BODIES)
def test_such_lines_fail_alone(check: Check, store: Store, endpoint: str) -> None:
    """Each becomes an error line with permission_denied that says why; the line beside it runs."""
    asking = [line(f"asks-{number}", endpoint, **more) for number, more in enumerate(ASKS)]
    checked = check(*asking, line("good", endpoint), endpoint=endpoint, storing_fails="line")
    assert (checked.errors, checked.total, checked.refused) == ((), 5, 4)
    assert [custom_id for _, custom_id in read_ids(store, BATCH, 0)] == ["good"]
    for row, more in zip(read_rows(store.read(layout.refused_key(BATCH))), ASKS, strict=True):
        error = json.loads(row.body)["error"]
        (key,) = more
        assert (row.status_code, row.code, row.input_tokens) == (403, "permission_denied", 0)
        assert (error["code"], error["type"], error["param"]) == (
            "permission_denied",
            "permission_error",
            key,
        )
        assert f"sets '{key}'" in error["message"]


def test_a_continued_conversation_needs_no_input(check: Check) -> None:
    """A line that leaves its input to what is stored elsewhere fails alone too, not its file."""
    gone_on = line("a", RESPONSES, conversation="conv_1")
    del gone_on["body"]["input"]
    checked = check(gone_on, line("b", RESPONSES), endpoint=RESPONSES, storing_fails="line")
    assert (checked.errors, checked.refused) == ((), 1)


def test_no_is_no_request(check: Check) -> None:
    """False and null ask for nothing: such lines run."""
    quiet = {"store": False, "background": False, "previous_response_id": None, "conversation": None}
    checked = check(line("a", RESPONSES, **quiet), endpoint=RESPONSES, storing_fails="line")
    assert (checked.errors, checked.refused) == ((), 0)


def test_a_wrong_type_fails_the_file(check: Check) -> None:
    """A text where true or false belongs is a bad line, as everywhere."""
    checked = check(line("a", RESPONSES, store="yes"), endpoint=RESPONSES, storing_fails="line")
    assert [(one.code, one.param) for one in checked.errors] == [("invalid_request", "body.store")]


@pytest.mark.parametrize("endpoint", BODIES)
def test_in_other_dialects_the_file_fails(check: Check, endpoint: str) -> None:
    """Where storing fails the file, every such line is named in the batch's errors."""
    asking = [line(f"asks-{number}", endpoint, **more) for number, more in enumerate(ASKS)]
    checked = check(*asking, endpoint=endpoint)
    assert [one.param for one in checked.errors] == [f"body.{next(iter(more))}" for more in ASKS]
