"""An S3 store that can be full: moto behind a gate that refuses what would take room, as MinIO does.

Writes come one at a time: create-once puts have one winner, which moto alone does not promise between threads.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

import httpx
from werkzeug.serving import make_server

BUCKET = "gridline"
FULL = b"<Error><Code>XMinioStorageFull</Code><Message>Storage backend has reached its minimum free drive threshold.</Message></Error>"
Answer = Iterable[bytes]


@dataclass
class FillableStore:
    """The store as its host sees it: whether it is full, and the addresses that it refused to write for that."""

    application: Callable[..., Answer] = field(repr=False)
    full: Event = field(default_factory=Event)
    refused: list[str] = field(default_factory=list)
    endpoint: str = ""
    one_at_a_time: Lock = field(default_factory=Lock)

    def __call__(self, request: dict[str, Any], start: Callable[..., Any]) -> Answer:
        """Answer one request."""
        writes = request["REQUEST_METHOD"] == "PUT" or (
            request["REQUEST_METHOD"] == "POST" and not request["QUERY_STRING"].startswith("delete")
        )
        if not writes:
            return self.application(request, start)
        if self.full.is_set():
            request["wsgi.input"].read(int(request.get("CONTENT_LENGTH") or 0))
            self.refused.append(request["PATH_INFO"])
            start("507 Insufficient Storage", [("Content-Length", str(len(FULL)))])
            return [FULL]
        with self.one_at_a_time:
            return list(self.application(request, start))

    def environment(self) -> dict[str, str]:
        """How a stack uses it."""
        return {
            "GRIDLINE_STORE_URL": f"s3://{BUCKET}/objects",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@contextmanager
def serving() -> Iterator[FillableStore]:
    """The store on a free port, with its bucket."""
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )

    class Quiet(MotoRequestHandler):
        def log(self, *_: object) -> None:
            """Say nothing: a test that fails shows its own words."""

    store = FillableStore(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=Quiet)
    store.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        httpx.put(f"{store.endpoint}/{BUCKET}").raise_for_status()
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
