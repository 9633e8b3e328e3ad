"""Row 37: a create whose answer was lost makes one batch, not two."""

import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
from openai import OpenAI

from tests.conformance.batch_service import CHAT_ENDPOINT, Secret, Service, refused
from tests.stack import Stack

HOP_BY_HOP = {"host", "connection", "content-length", "transfer-encoding", "content-encoding"}


def doomed_file(service: Service) -> str:
    """A file whose batch fails at validation: whether it is made twice shows without running anything."""
    return service.file([service.chat_line("a", n=0)])


def keyed(service: Service, key: str, file_id: str, **more: Any) -> httpx.Response:
    """A create with an Idempotency-Key."""
    asked = {"input_file_id": file_id, "endpoint": CHAT_ENDPOINT, "completion_window": "24h", **more}
    return service.http.post("/batches", json=asked, headers={"Idempotency-Key": key})


def batches_of(service: Service, file_id: str) -> list[str]:
    """The ids of all batches of a file, newest first."""
    data = service.http.get("/batches", params={"limit": 100}).json()["data"]
    return [one["id"] for one in data if one["input_file_id"] == file_id]


@contextmanager
def forgetful_proxy(base_url: str) -> Iterator[tuple[str, list[str]]]:
    """A proxy that passes everything on but drops its first answer to a create; with the retry counts it saw."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name: one for name, one in self.headers.items() if name.lower() not in HOP_BY_HOP}
            answer = httpx.post(f"{base_url}{self.path}", content=body, headers=headers, timeout=60)
            seen.append(self.headers.get("x-stainless-retry-count", ""))
            if len(seen) == 1:
                self.close_connection = True
                return
            self.send_response(answer.status_code)
            for name, one in answer.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, one)
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: Any) -> None:
            """Say nothing: a test's log is its failures."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()
            thread.join()


def test_case_37_idempotency_keys(service: Service) -> None:
    """The same key and body get the same batch, also ten at once; another body is a 409 that invites no retry."""
    file_id, key = doomed_file(service), secrets.token_hex(8)
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: keyed(service, key, file_id), range(10)))
    assert [one.status_code for one in answers] == [200] * 10
    (batch_id,) = {one.json()["id"] for one in answers}
    assert batches_of(service, file_id) == [batch_id]
    conflict = keyed(service, key, file_id, metadata={"another": "body"})
    refused(conflict, 409, code="idempotency_conflict", param="Idempotency-Key")
    assert conflict.headers["x-should-retry"] == "false"
    service.finished(batch_id)
    assert keyed(service, key, file_id).json()["id"] == batch_id
    assert batches_of(service, file_id) == [batch_id]


def test_case_37_idempotency_key_lengths(service: Service) -> None:
    """A key has 1 to 128 characters; a longer or an empty one is a 400 and makes nothing."""
    file_id, long = doomed_file(service), secrets.token_hex(64)
    first, again = keyed(service, long, file_id), keyed(service, long, file_id)
    assert first.json()["id"] == again.json()["id"]
    for bad in (f"{long}x", ""):
        refused(keyed(service, bad, file_id), 400, param="Idempotency-Key")
    shortest = keyed(service, secrets.token_hex(1)[0], file_id)
    assert shortest.status_code in {200, 409}, shortest.text  # 409: an earlier run of the suite used it
    assert len(batches_of(service, file_id)) <= 2


def test_case_37_a_lost_answer_is_found_again_without_a_key(service: Service) -> None:
    """The SDK as it is retries a create whose answer was lost and gets the batch that the first try made."""
    file_id = doomed_file(service)
    with (
        forgetful_proxy(service.base_url) as (url, seen),
        OpenAI(base_url=url, api_key=service.token, timeout=60) as client,
    ):

        def create() -> str:
            endpoint: Any = CHAT_ENDPOINT
            batch = client.batches.create(input_file_id=file_id, endpoint=endpoint, completion_window="24h")
            return batch.id

        first = create()
        assert seen == ["0", "1"]
        assert batches_of(service, file_id) == [first]
        another = create()
        assert seen == ["0", "1", "0"]
        assert batches_of(service, file_id) == [another, first], "a create that is no retry is a new batch"


def test_case_37_a_key_survives_the_change_of_tokens(operator: Stack, service: Service) -> None:
    """An Idempotency-Key is the account's: with another token of the account it still finds the first batch."""
    name = f"conformance-keys-{secrets.token_hex(4)}"
    tokens = [operator.customer(name).token, operator.gridline("ops", "token", name).strip()]
    one, two = (replace(service, token=Secret(token)) for token in tokens)
    with closing(one.http), closing(two.http):
        file_id, key = doomed_file(one), secrets.token_hex(8)
        assert keyed(one, key, file_id).json()["id"] == keyed(two, key, file_id).json()["id"]
        assert len(batches_of(two, file_id)) == 1
