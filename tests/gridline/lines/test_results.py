"""Lines of result files, byte for byte."""

import json

import pytest

from gridline import ids
from gridline.lines.results import missing_line, response_line

BATCH = ids.derived("batch", "test")


def test_response_line() -> None:
    """An answered line has OpenAI's keys in order, the body untouched, and an id that every run derives alike."""
    line = response_line(BATCH, 3, 'é"\u2028', status=200, request="req_1", body='{"a": 1.10}')
    line_id = ids.derived("line", BATCH, 3)
    expected = (
        f'{{"id":"{line_id}","custom_id":"é\\"\u2028",'
        '"response":{"status_code":200,"request_id":"req_1","body":{"a": 1.10}},"error":null}\n'
    )
    assert line == expected.encode()


def test_body_with_line_breaks() -> None:
    """A body laid out over several lines still makes one line."""
    line = response_line(BATCH, 0, "a", status=200, request="r", body='{\r\n "a": "x\\n"\n}')
    assert line.count(b"\n") == 1
    assert json.loads(line)["response"]["body"] == {"a": "x\n"}


@pytest.mark.parametrize("code", ["batch_expired", "batch_cancelled"])
def test_line_that_never_ran(code: str) -> None:
    """No response, and an error with code and message only."""
    line = json.loads(missing_line(BATCH, 0, "a", code=code, message="Why."))
    assert line == {
        "id": ids.derived("line", BATCH, 0),
        "custom_id": "a",
        "response": None,
        "error": {"code": code, "message": "Why."},
    }


def test_line_that_was_lost() -> None:
    """A fault of ours is answered with 500 and an error object, and error is null."""
    line = json.loads(missing_line(BATCH, 0, "a", code="server_error", message="Why."))
    assert line["error"] is None
    assert line["response"] == {
        "status_code": 500,
        "request_id": ids.derived("request", BATCH, 0),
        "body": {"error": {"message": "Why.", "type": "server_error", "param": None, "code": "server_error"}},
    }
