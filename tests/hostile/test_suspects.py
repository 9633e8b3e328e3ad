"""What a server like this one is first suspected of: each by name, with the answer that it gets."""

import json
from collections.abc import Callable

import pytest

from tests.api.conftest import Customer
from tests.hostile.attempts import Attempt, Known, request
from tests.hostile.test_requests import answers, known_by, problems

JSON = ("Content-Type", "application/json")
CREATE = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}


def create(known: Known, *headers: tuple[str, str | bytes], **more: object) -> bytes:
    """A create that would be good but for what is given."""
    body = json.dumps({"input_file_id": known.file_id, **CREATE, **more}).encode()
    return request(known, "POST", "/v1/batches", [JSON, *headers], body)


def asking(target: str, *headers: tuple[str, str | bytes]) -> Callable[[Known], bytes]:
    """A GET; ``FILE`` in the target is the file's id."""
    return lambda known: request(known, "GET", target.replace("FILE", known.file_id), headers)


def bare(data: bytes) -> Callable[[Known], bytes]:
    """Exactly these bytes."""
    return lambda _: data


HOST = b"Host: g\r\nConnection: close\r\n\r\n"
SUSPECTS: dict[str, tuple[Callable[[Known], bytes], list[tuple[int, str | None]]]] = {
    "an id that climbs out of its folder": (asking("/v1/files/..%2f..%2fetc%2fpasswd/content"), [(404, "unknown_url")]),
    "an id with NUL": (asking("/v1/files/%00"), [(404, "not_found")]),
    "an id of broken UTF-8": (asking("/v1/batches/%ff%fe"), [(404, "not_found")]),
    "a cursor with NUL": (asking("/v1/files?after=%00"), [(404, "not_found")]),
    "a cursor of batches with NUL": (asking("/v1/batches?after=batch_%00"), [(404, "not_found")]),
    "a limit in other digits": (asking("/v1/files?limit=%D9%A3"), [(400, "invalid_value")]),
    "a range of letters": (asking("/v1/files/FILE/content", ("Range", "bytes=abc")), [(200, None)]),
    "a range past the end": (asking("/v1/files/FILE/content", ("Range", "bytes=9999999-")), [(416, "range_not_satisfiable")]),
    "a negative Content-Length": (bare(b"POST /v1/batches HTTP/1.1\r\nContent-Length: -1\r\n" + HOST), [(400, "invalid_http")]),
    "two lengths": (bare(b"POST /v1/batches HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + HOST), [(400, "invalid_http")]),
    "an unknown transfer coding": (bare(b"POST /v1/batches HTTP/1.1\r\nTransfer-Encoding: gzip\r\n" + HOST), [(501, "not_implemented")]),
    "a key of bytes that are no text": (lambda known: create(known, ("Idempotency-Key", b"\xff\x80")), [(400, "invalid_value")]),
    "a key of a lone surrogate": (lambda known: create(known, ("Idempotency-Key", b"\xed\xa0\x80")), [(400, "invalid_value")]),
    "a count of retries that is no number": (lambda known: create(known, ("X-Stainless-Retry-Count", b"\xd9\xa3")), [(200, None)]),
    "metadata with a lone surrogate": (lambda known: create(known, metadata={"\ud800": "x"}), [(400, "invalid_json")]),
    "metadata with NUL": (lambda known: create(known, metadata={"a": "\0"}), [(400, "invalid_value")]),
    "a header of 70 kB": (asking("/v1/files", ("X-Long", "x" * 70_000)), [(431, "headers_too_large")]),
    "a header with a line break in it": (asking("/v1/files", ("X-A", "a\nX-Injected: 1")), [(400, "invalid_http")]),
    "an expectation": (lambda known: create(known, ("Expect", "100-continue")), [(200, None)]),
    "an address with a host": (bare(b"GET http://evil.example/healthz HTTP/1.1\r\n" + HOST), [(200, None)]),
    "an address that cannot be split": (bare(b"GET http://[::1 HTTP/1.1\r\n" + HOST), [(400, "invalid_http")]),
    "no version": (bare(b"GET /healthz\r\n\r\n"), [(200, None)]),
    "a version that does not exist": (bare(b"GET /healthz HTTP/9.9\r\n" + HOST), [(200, None)]),
    "the preface of HTTP/2": (bare(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), [(404, "unknown_url")]),
    "three requests at once": (bare(b"GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n" * 2 + b"GET /readyz HTTP/1.1\r\n" + HOST), [(200, None)] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", SUSPECTS)
def test_a_suspect_gets_its_answer(name: str, mallory: Customer) -> None:
    """The expected status and code, in the shape and with the headers of every answer."""
    make, expected = SUSPECTS[name]
    attempt = Attempt(name, make(known_by(mallory)), answers=len(expected))
    found = answers(mallory.http.base_url.port or 0, attempt)
    shown = [(one.status, code(one.body)) for one in found]  # type: ignore[attr-defined]
    assert shown == expected
    assert list(problems(attempt, found)) == []


def code(body: bytes) -> str | None:
    """The code of an error object; None for everything else."""
    try:
        return str(json.loads(body)["error"]["code"])
    except (ValueError, KeyError):
        return None
