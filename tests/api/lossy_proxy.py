"""A proxy on loopback that loses what it is told to: answers of creates, or the requests themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from threading import Thread
from urllib.parse import urlsplit

_NOT_FORWARDED = {"connection", "transfer-encoding", "keep-alive"}


class LossyProxy(ThreadingHTTPServer):
    """Knows what it loses still, and the retry counts of the creates that it saw."""

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream).netloc
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.answers_to_lose = 0
        self.requests_to_lose = 0
        self.retry_counts: list[str | None] = []


@contextmanager
def lossy_proxy(upstream: str) -> Iterator[LossyProxy]:
    """Forward to ``upstream`` until the block ends."""
    proxy = LossyProxy(upstream)
    thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LossyProxy

    def do_GET(self) -> None:
        self._forward(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self.path.endswith("/v1/batches"):
            self._forward(body)
            return
        self.server.retry_counts.append(self.headers.get("x-stainless-retry-count"))
        if self.server.requests_to_lose:
            self.server.requests_to_lose -= 1
            self._hang_up()
        else:
            self._forward(body, may_lose=True)

    def _forward(self, body: bytes | None, *, may_lose: bool = False) -> None:
        upstream = HTTPConnection(self.server.upstream, timeout=20)
        try:
            upstream.request(self.command, self.path, body, dict(self.headers))
            answer = upstream.getresponse()
            content = answer.read()
        finally:
            upstream.close()
        if may_lose and self.server.answers_to_lose:
            self.server.answers_to_lose -= 1
            self._hang_up()
            return
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _NOT_FORWARDED:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
