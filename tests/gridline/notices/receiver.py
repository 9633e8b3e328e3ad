"""A real HTTP receiver of webhooks on a free port, which answers as the test says."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread


@dataclass
class Got:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event_id(self) -> str:
        """Which event it says to be."""
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """Remembers what came; ``answer`` makes the status of a request."""

    answer: Callable[[Got], int] = lambda _: 204
    got: list[Got] = field(default_factory=list)
    url: str = ""
    lock: Lock = field(default_factory=Lock)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2].partition("/")[0])


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver while the test runs."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            got = Got(self.path, headers, body)
            with receiver.lock:
                receiver.got.append(got)
            status = receiver.answer(got)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hooks?key=hidden"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
