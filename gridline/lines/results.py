"""The lines of output and error files, byte for byte. Bodies are passed through as the JSON they arrived as."""

import json
from collections.abc import Mapping
from typing import Any

from gridline import ids

NEVER_RUN_CODES = frozenset({"batch_expired", "batch_cancelled"})
"""A line that ends with one of these never ran, so it has no response."""


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def compact(value: object) -> str:
    """JSON on one line, in the text's own characters."""
    return _ENCODER.encode(value)


def error_body(message: str, code: str, *, kind: str, param: str | None = None) -> str:
    """The body of a response that carries OpenAI's error object; ``kind`` is its ``type``. The same on every endpoint."""
    return compact({"error": {"message": message, "type": kind, "param": param, "code": code}})


def tokens_of(usage: Mapping[str, Any]) -> tuple[int, int]:
    """(input, output) tokens of a body's usage, as its endpoint names them: what is billed."""
    given = usage.get("prompt_tokens", usage.get("input_tokens", 0))
    written = usage.get("completion_tokens", usage.get("output_tokens", 0))
    return given, written


def request_id(batch_id: str, line: int) -> str:
    """The id of a line's response where no engine gave one: the same on every run."""
    return ids.derived("request", batch_id, line)


def response_line(batch_id: str, line: int, custom_id: str, *, status: int, request: str, body: str) -> bytes:
    """A line that was answered, delivered or not; ``body`` is JSON text."""
    if "\n" in body or "\r" in body:
        # A line break inside JSON text is only layout, but it would break the file's lines.
        body = compact(json.loads(body))
    return (
        f'{{"id":{compact(ids.derived("line", batch_id, line))},"custom_id":{compact(custom_id)},'
        f'"response":{{"status_code":{status},"request_id":{compact(request)},"body":{body}}},"error":null}}\n'
    ).encode()


def missing_status(code: str) -> int | None:
    """What the response of a line without a result says; None where it has no response."""
    return None if code in NEVER_RUN_CODES else 500


def missing_line(batch_id: str, line: int, custom_id: str, *, code: str, message: str) -> bytes:
    """A line without a result: never run (expired, cancelled), or lost to a fault of ours (server_error)."""
    status = missing_status(code)
    if status is not None:
        body = error_body(message, code, kind="server_error")
        request = request_id(batch_id, line)
        return response_line(batch_id, line, custom_id, status=status, request=request, body=body)
    row = {
        "id": ids.derived("line", batch_id, line),
        "custom_id": custom_id,
        "response": None,
        "error": {"code": code, "message": message},
    }
    return f"{compact(row)}\n".encode()
