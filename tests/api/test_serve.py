"""The server process: memory flat under large uploads, a clean stop."""

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from api import serve
from gridline.customers import accounts, tokens
from gridline.db.work import unit_of_work
from tests.serving import Served, serving

MEGABYTE = 1000 * 1000


@pytest.fixture
def served(database: Engine, tmp_path: Path) -> Iterator[Served]:
    """``python -m api.serve`` on a free port, ready."""
    with serving(database, tmp_path) as one:
        yield one


def lines(size: int) -> Iterator[bytes]:
    """A JSONL of exactly that many bytes, in pieces."""
    line = b'{"a":"' + b"x" * (50_000 - 9) + b'"}\n'
    for _ in range(size // len(line)):
        yield line


@pytest.mark.deep
def test_200_megabytes_stream_through_flat_memory(served: Served, tmp_path: Path) -> None:
    """Exactly 200 MB is taken, 201 MB gets a readable 413, and the process never grows past 300 MB."""
    with unit_of_work() as work:
        account = accounts.open_account(work, tmp_path.name)
        _, token = tokens.issue(work, account.id, "large")
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="r.jsonl"\r\n\r\n'
    tail = b'\r\n--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b--\r\n'
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "multipart/form-data; boundary=b",
    }
    answers = []
    for size in (200 * MEGABYTE, 201 * MEGABYTE):

        def body(size: int = size) -> Iterator[bytes]:
            yield head
            yield from lines(size)
            yield tail

        answers.append(httpx.post(f"{served.url}/v1/files", headers=headers, content=body(), timeout=120))
    assert [answer.status_code for answer in answers] == [200, 413]
    assert answers[0].json()["bytes"] == 200 * MEGABYTE
    with httpx.stream(
        "GET", f"{served.url}/v1/files/{answers[0].json()['id']}/content", headers=headers
    ) as back:
        assert sum(len(chunk) for chunk in back.iter_bytes()) == 200 * MEGABYTE
    assert served.peak_megabytes() < 300


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "connections"),
    [
        (1_024, 20_000, 6_200, 2_000),
        (1_024, resource.RLIM_INFINITY, 6_200, 2_000),
        (1_024, 3_200, 3_200, 1_000),
        (20_000, 20_000, None, 2_000),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, 2_000),
    ],
)
def test_there_are_files_for_every_connection(
    soft: int, hard: int, raised: int | None, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process asks for as many open files as its connections need, and takes fewer where it gets fewer."""
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: asked.append(pair))
    assert serve._connections_max() == connections
    assert asked == ([] if raised is None else [(raised, hard)])


@pytest.mark.deep
def test_sigterm_ends_the_process_cleanly(served: Served) -> None:
    """A supervisor's stop is quick, leaves exit code 0 and a closed port."""
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(10) == 0
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{served.url}/healthz")
