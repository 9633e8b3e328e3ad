"""Connections: bodies that flow, refusals that are read, who dawdles. On an app that knows no database."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

import pytest
from flask import Flask, request

from api import channel, serve
from api.channel import FLOW_FROM_BYTES, FLOWS_MAX, Channel
from api.flow import HELD_BYTES_MAX
from tests.serving import close_in_its_loop

PIECE = b"0123456789abcdef" * 4096
MEBIBYTE = 1 << 20


@dataclass
class Site:
    """A running server, what its app saw, and a switch that lets its slow route go on."""

    server: Any
    reading: Event
    ended: list[int]
    go: Event

    def connection(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.server.effective_port), timeout=20)

    def channels(self) -> list[Channel]:
        """The server's connections."""
        return list(self.server.active_channels.values())

    def received(self) -> list[int]:
        """Bytes that came of each body which is not whole yet."""
        requests = [one.request for one in self.channels()]
        return [len(one.body_rcv) for one in requests if one is not None]


@pytest.fixture
def site() -> Iterator[Site]:
    """An app that reads, or refuses to."""
    app = Flask("site")

    @app.post("/read")
    def read() -> str:
        one.reading.set()
        size = 0
        while data := request.stream.read(100_000):
            size += len(data)
        one.ended.append(size)
        return str(size)

    @app.post("/hold")
    def hold() -> str:
        one.reading.set()
        one.go.wait(20)
        return str(len(request.stream.read()))

    @app.post("/refuse")
    def refuse() -> tuple[str, int]:
        return "no", 401

    @app.get("/large")
    def large() -> bytes:
        return bytes(64 * MEBIBYTE)

    server = serve.make_server(app, "127.0.0.1", 0)
    server.adj.cleanup_interval = 0
    one = Site(server, Event(), [], Event())
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    yield one
    one.go.set()
    close_in_its_loop(server)
    thread.join(10)
    server.task_dispatcher.shutdown()


def head(path: str, size: int | None, *more: str) -> bytes:
    """A POST's head; without a size its body comes in chunks."""
    length = "Transfer-Encoding: chunked" if size is None else f"Content-Length: {size}"
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", length, *more, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; of nothing, the last."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of the next answer (its bytes come at once, and nothing after it)."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1)
    lines = data.decode().lower().split("\r\n")
    (size,) = [int(line.split(":")[1]) for line in lines if line.startswith("content-length:")]
    body = b""
    while len(body) < size:
        body += connection.recv(size - len(body))
    return int(lines[0].split()[1]), body


def until(true: Callable[[], object]) -> None:
    """Wait for a condition for 20 seconds at most."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_read_while_it_arrives(site: Site, *, chunked: bool) -> None:
    """The app reads before the end is sent, gets every byte, and the connection serves the next request."""
    pieces = [PIECE] * 48
    with site.connection() as connection:
        connection.sendall(head("/read", None if chunked else 48 * len(PIECE)))
        for piece in pieces[:-1]:
            connection.sendall(chunk(piece) if chunked else piece)
        assert site.reading.wait(20)
        assert site.ended == []
        connection.sendall(chunk(pieces[-1]) + chunk(b"") if chunked else pieces[-1])
        assert answer(connection) == (200, str(48 * len(PIECE)).encode())
        connection.sendall(head("/read", 3) + b"abc")
        assert answer(connection) == (200, b"3")


def test_a_request_right_behind_a_large_body_is_served(site: Site) -> None:
    """Two requests sent in one go, the first large: each gets its answer, in their order."""
    with site.connection() as connection:
        connection.sendall(head("/read", 40 * len(PIECE)) + PIECE * 40 + head("/read", 3) + b"abc")
        assert answer(connection) == (200, str(40 * len(PIECE)).encode())
        assert answer(connection) == (200, b"3")


def test_a_fast_sender_waits_for_a_slow_reader(site: Site) -> None:
    """What the app does not read yet stays with the client: a few megabytes are held, not all that is sent."""
    size = 64 * MEBIBYTE
    with site.connection() as connection:
        sender = Thread(target=connection.sendall, args=(head("/hold", size) + bytes(size),))
        sender.start()
        assert site.reading.wait(20)
        (one,) = site.channels()
        until(lambda: not one.readable())
        assert one._flow is not None
        assert len(one._flow) <= HELD_BYTES_MAX + serve.RECEIVE_BYTES
        site.go.set()
        assert answer(connection) == (200, str(size).encode())
        sender.join()


def test_few_bodies_flow_and_the_others_come_all_the_same(site: Site) -> None:
    """Only so many threads wait for clients; a body beside them is received first, and a small request is served."""
    size = FLOW_FROM_BYTES + 10
    connections = [site.connection() for _ in range(serve.THREADS + 1)]
    for connection in connections:
        connection.sendall(head("/read", size) + bytes(size - 1))
    until(lambda: sum(site.received()) == len(connections) * (size - 1))
    until(lambda: sum(one.flows for one in site.channels()) >= FLOWS_MAX)
    assert sum(one.flows for one in site.channels()) == FLOWS_MAX
    with site.connection() as other:
        other.sendall(head("/read", 3) + b"abc")
        assert answer(other) == (200, b"3")
    for connection in connections:
        connection.sendall(b"x")
        assert answer(connection) == (200, str(size).encode())
        connection.close()


@pytest.mark.parametrize("chunked", [False, True])
def test_an_early_refusal_is_read_after_all_is_sent(site: Site, *, chunked: bool) -> None:
    """An app that answers without reading: the rest is dropped, the answer read, the connection kept."""
    with site.connection() as connection:
        connection.sendall(head("/refuse", None if chunked else 400 * len(PIECE)))
        for _ in range(400):
            connection.sendall(chunk(PIECE) if chunked else PIECE)
        if chunked:
            connection.sendall(chunk(b""))
        assert answer(connection) == (401, b"no")
        connection.sendall(head("/read", 3) + b"abc")
        assert answer(connection) == (200, b"3")


def test_a_refusal_that_closes_is_read_after_all_is_sent(site: Site) -> None:
    """The same for a client that wants no second request: the close waits for it."""
    with site.connection() as connection:
        connection.sendall(head("/refuse", 400 * len(PIECE), "Connection: close"))
        for _ in range(400):
            connection.sendall(PIECE)
        assert answer(connection) == (401, b"no")
        assert connection.recv(1) == b""


def test_a_body_that_is_never_taken_still_reads_its_refusal(site: Site) -> None:
    """A length over the server's bound is refused at once, as JSON with the limit, to who sends on first."""
    with site.connection() as connection:
        connection.sendall(head("/read", serve.BODY_BYTES_MAX + 1))
        for _ in range(400):
            connection.sendall(PIECE)
        status, body = answer(connection)
        assert status == 413
        assert "200000000" in json.loads(body)["error"]["message"]
        assert connection.recv(1) == b""
    until(lambda: site.channels() == [])


def test_a_client_that_leaves_frees_its_thread(site: Site) -> None:
    """More clients than threads send half a large body and hang up: every thread ends, others are served."""
    for _ in range(serve.THREADS + 1):
        site.reading.clear()
        with site.connection() as connection:
            connection.sendall(head("/read", 10 * MEBIBYTE) + bytes(MEBIBYTE))
            assert site.reading.wait(20)
    until(lambda: len(site.ended) == serve.THREADS + 1)
    assert max(site.ended) <= MEBIBYTE
    with site.connection() as connection:
        connection.sendall(head("/read", 3) + b"abc")
        assert answer(connection) == (200, b"3")


def test_a_broken_chunk_ends_the_connection(site: Site) -> None:
    """After nonsense between chunks nobody knows where a request begins: the app's answer is the last."""
    with site.connection() as connection:
        connection.sendall(head("/read", None) + chunk(bytes(MEBIBYTE)))
        assert site.reading.wait(20)
        connection.sendall(b"nonsense\r\n" + head("/read", 3) + b"abc")
        assert answer(connection) == (200, str(MEBIBYTE).encode())
        assert connection.recv(1) == b""


def test_a_refused_body_that_breaks_ends_the_connection(site: Site) -> None:
    """The same when the answer was given before the nonsense came."""
    with site.connection() as connection:
        connection.sendall(head("/refuse", None) + chunk(bytes(MEBIBYTE)))
        assert answer(connection) == (401, b"no")
        connection.sendall(b"nonsense\r\n")
        assert connection.recv(1) == b""


BEGINNINGS = {
    "head": b"POST /read HTTP/1.1\r\nHost: ",
    "small body": head("/read", 1000) + b"x",
    "flowing body": head("/read", 10 * MEBIBYTE) + bytes(MEBIBYTE),
    "refused body": head("/refuse", 10 * MEBIBYTE) + bytes(MEBIBYTE),
    "answer": b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_who_stands_still_is_hung_up_on(site: Site, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A head, a body and an answer that do not move end with their connection, and with the thread that waits."""
    monkeypatch.setattr(channel, "PACE_SECONDS", 1)
    with site.connection() as connection:
        connection.sendall(BEGINNINGS[name])
        until(lambda: len(site.channels()) == 1)
        until(lambda: site.channels() == [])
    until(lambda: name != "flowing body" or site.ended == [MEBIBYTE])


def test_who_moves_slowly_is_left_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body somewhat above the least pace arrives, over several of the times that the pace is judged by."""
    monkeypatch.setattr(channel, "PACE_SECONDS", 1)
    with site.connection() as connection:
        connection.sendall(head("/read", 80_000))
        for _ in range(16):
            connection.sendall(bytes(5_000))
            time.sleep(0.25)
        assert answer(connection) == (200, b"80000")


def test_a_slow_app_is_not_its_clients_fault(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the app thinks nothing moves, and the connection stays: with a small body and with one that fills its room."""
    monkeypatch.setattr(channel, "PACE_SECONDS", 1)
    size = 32 * MEBIBYTE
    for body in (b"abc", bytes(size)):
        site.go.clear()
        site.reading.clear()
        with site.connection() as connection:
            sender = Thread(target=connection.sendall, args=(head("/hold", len(body)) + body,))
            sender.start()
            assert site.reading.wait(20)
            time.sleep(2.5)
            site.go.set()
            assert answer(connection) == (200, str(len(body)).encode())
            sender.join()


def test_a_client_that_asks_first_is_told_to_go_on(site: Site) -> None:
    """Expect: 100-continue is answered at once, with a large body too."""
    for size in (3, 5 * MEBIBYTE):
        with site.connection() as connection:
            begun = time.monotonic()
            connection.sendall(head("/read", size, "Expect: 100-continue"))
            assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert time.monotonic() - begun < 1
            connection.sendall(bytes(size))
            assert answer(connection) == (200, str(size).encode())
