"""How fast the API is beside what it could be at best: `make bench-api`.

An upload of 200 MB beside nginx storing the same bytes, and a poll of a batch beside hello world on the same server
code; both sides in turn, several rounds, medians. Only the ratios mean something on a shared machine.
"""

import json
import os
import secrets
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from api.serve import RECEIVE_BYTES
from bench import servers
from gridline import limits
from gridline.errors import GridlineError, Unavailable

UPLOAD_ROUNDS = 9
POLL_ROUNDS = 9
POLL_SECONDS = 2.0
POLL_CONNECTIONS = 8
RATIO_AIM = 0.5
BOUNDARY = secrets.token_hex(16)
MEGABYTE = 1000 * 1000


class Connection:
    """One keep-alive connection that costs next to nothing, so that the server is what is measured."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port or 80), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer, which must have a length.

        Raises:
            Unavailable: the server hung up first.
        """
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        lengths = [int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")]
        while len(body) < (lengths or [0])[0]:
            body += self._more()
        return int(head.split(b" ")[1]), body

    def _more(self) -> bytes:
        data = self.socket.recv(1 << 16)
        if not data:
            raise Unavailable("The server closed the connection before its answer was whole.")
        return data


def head(method: str, path: str, *headers: str) -> bytes:
    """A request's head."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: bench", *headers, "", ""]).encode()


def write_body(path: Path) -> None:
    """A form with a JSONL of exactly the largest size: as many lines as a file may have, in several scripts."""
    field = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
    field += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="bench.jsonl"\r\n\r\n'
    text = "Say yes, in one word, and tell nobody. " * 90 + "Grüße aus Köln. Привет. 你好。 " * 6
    body = {"model": "bench", "messages": [{"role": "user", "content": text}]}
    with path.open("wb") as file:
        file.write(field.encode())
        left = limits.FILE_BYTES_MAX
        for number in range(limits.FILE_LINES_MAX - 1):
            line = {
                "custom_id": f"line-{number}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": body,
            }
            data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
            if left < 2 * len(data):
                break
            left -= file.write(data)
        file.write(b'{"last":"' + b"x" * (left - 12) + b'"}\n')
        file.write(f"\r\n--{BOUNDARY}--\r\n".encode())


def send(url: str, head_: bytes, body: Path) -> tuple[float, bytes]:
    """Seconds from the first byte sent to the whole answer, and the answer's body.

    Raises:
        Unavailable: an answer that is no success.
    """
    connection = Connection(url)
    with body.open("rb") as file:
        begun = time.monotonic()
        connection.socket.sendall(head_)
        connection.socket.sendfile(file)
        status, answer = connection.answer()
        seconds = time.monotonic() - begun
    connection.close()
    if status not in {200, 201, 204}:
        raise Unavailable(f"{url} answered {status}: {answer[:500]!r}")
    return seconds, answer


def upload_to_us(served: servers.Ours, body: Path) -> float:
    """One upload, taken away again outside the measured time."""
    authorization = f"Authorization: Bearer {served.token}"
    kind = f"Content-Type: multipart/form-data; boundary={BOUNDARY}"
    length = f"Content-Length: {body.stat().st_size}"
    seconds, answer = send(served.url, head("POST", "/v1/files", authorization, kind, length), body)
    made = json.loads(answer)
    if made["bytes"] != limits.FILE_BYTES_MAX:
        raise Unavailable(f"The upload arrived with {made['bytes']} bytes.")
    client = {"Authorization": f"Bearer {served.token}"}
    httpx.delete(f"{served.url}/v1/files/{made['id']}", headers=client, timeout=30).raise_for_status()
    return seconds


def upload_to_nginx(url: str, body: Path) -> float:
    """The same bytes into a file of nginx."""
    seconds, _ = send(url, head("PUT", "/bench", f"Content-Length: {body.stat().st_size}"), body)
    httpx.delete(f"{url}bench", timeout=30).raise_for_status()
    return seconds


def requests_per_second(url: str, path: str, *headers: str) -> float:
    """How often several keep-alive connections, each asking as soon as it is answered, get their answer.

    Raises:
        Unavailable: an answer that is not 200.
    """
    asked = head("GET", path, *headers)
    connections = [Connection(url) for _ in range(POLL_CONNECTIONS)]
    done = 0
    with selectors.DefaultSelector() as ready:
        for one in connections:
            ready.register(one.socket, selectors.EVENT_READ, one)
            one.socket.sendall(asked)
        begun = time.monotonic()
        while time.monotonic() - begun < POLL_SECONDS:
            for key, _ in ready.select():
                status, answer = key.data.answer()
                if status != 200:  # noqa: PLR2004 - HTTP's own number
                    raise Unavailable(f"{path} answered {status}: {answer[:500]!r}")
                done += 1
                key.data.socket.sendall(asked)
        seconds = time.monotonic() - begun
    for one in connections:
        one.close()
    return done / seconds


def make_batch(served: servers.Ours) -> str:
    """A batch to poll."""
    with httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {served.token}"}) as client:
        file = ("one.jsonl", b'{"custom_id":"one"}\n')
        made = client.post("/v1/files", data={"purpose": "batch"}, files={"file": file}).raise_for_status()
        wanted = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
        wanted["input_file_id"] = made.json()["id"]
        return str(client.post("/v1/batches", json=wanted).raise_for_status().json()["id"])


def in_turn(rounds: int, *sides: Callable[[], float]) -> list[list[float]]:
    """What each side measures, all sides in turn in every round, after one round that does not count."""
    found = [[side() for side in sides] for _ in range(rounds + 1)]
    return [list(one) for one in zip(*found[1:], strict=True)]


def ratio_of(pairs: list[tuple[float, float]]) -> str:
    """The median of the rounds' ratios, with the lowest and highest."""
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    middle = statistics.median(ratios)
    return f"{middle:.2f} (rounds {ratios[0]:.2f} to {ratios[-1]:.2f}; aim: at least {RATIO_AIM})"


def bench_upload(served: servers.Ours, folder: Path) -> None:
    """Our upload beside that of nginx as it comes, and of one that reads as much at once as we do."""
    program = servers.nginx_program()
    if program is None:
        print("upload: skipped, there is no nginx to compare with (Debian: apt-get install nginx-light)")
        return
    body = folder / "body"
    write_body(body)
    with (
        servers.nginx(folder / "plain", program) as plain,
        servers.nginx(folder / "tuned", program, more=f"client_body_buffer_size {RECEIVE_BYTES};") as tuned,
    ):
        us, nginx, large = in_turn(
            UPLOAD_ROUNDS,
            lambda: upload_to_us(served, body),
            lambda: upload_to_nginx(plain, body),
            lambda: upload_to_nginx(tuned, body),
        )
    size = body.stat().st_size / MEGABYTE
    for name, found in (("ours", us), ("nginx", nginx), ("nginx, large buffer", large)):
        middle = statistics.median(found)
        print(f"upload, {name:<20}{middle:>8.3f} s{size / middle:>9.0f} MB/s")
    print(f"upload, ours beside nginx: {ratio_of(list(zip(nginx, us, strict=True)))}")
    print(f"upload, ours beside nginx with a large buffer: {ratio_of(list(zip(large, us, strict=True)))}")


def bench_poll(served: servers.Ours) -> None:
    """Polls of a batch beside hello world."""
    path = f"/v1/batches/{make_batch(served)}"
    authorization = f"Authorization: Bearer {served.token}"
    with servers.hello() as url:
        us, hello = in_turn(
            POLL_ROUNDS,
            lambda: requests_per_second(served.url, path, authorization),
            lambda: requests_per_second(url, "/"),
        )
    for name, found in (("ours", us), ("hello world", hello)):
        print(f"poll,   {name:<20}{statistics.median(found):>8.0f} requests/s")
    print(f"poll, ours beside hello world: {ratio_of(list(zip(us, hello, strict=True)))}")


def main() -> int:
    """Start the servers, measure, print, stop."""
    print(f"{os.cpu_count()} CPU cores, {UPLOAD_ROUNDS} and {POLL_ROUNDS} rounds, both sides in turn")
    try:
        with servers.new_folder() as folder, servers.ours(folder) as served:
            bench_upload(served, folder)
            bench_poll(served)
    except GridlineError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
