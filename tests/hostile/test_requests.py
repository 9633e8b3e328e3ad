"""A thousand hostile requests from a seed: no 500, no HTML, no leak; others are served, nothing grows, nothing strays."""

import json
import socket
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from random import Random
from typing import Any, Self

import pytest
from sqlalchemy import select

from gridline.db.work import unit_of_work
from gridline.files.tables import File, UploadPart
from tests.api import described
from tests.api.conftest import Customer, customer
from tests.hostile.attempts import CANARY, MAKERS, Attempt, Known
from tests.hostile.conftest import Process, unbounded
from tests.hostile.forms import form
from tests.serving import Poller

SEED = 20_260_105
PATIENCE_SECONDS = 30
GROWTH_MEGABYTES = 64
DESCRIBED = {"query", "header", "json", "form", "range", "repeated"}
"""Kinds whose first line is whole, so that the document says what may come back once the application is asked."""


def known_by(one: Customer) -> Known:
    """A file, a batch and an upload of the customer."""
    file_id = one.file()
    batch_id = str(one.batch(file_id)["id"])
    upload = {"filename": "r.jsonl", "purpose": "batch", "bytes": 9, "mime_type": "text/plain"}
    return Known(one.token, file_id, batch_id, one.http.post("/v1/uploads", json=upload).json()["id"])


def attempts(count: int, known: Known) -> Iterator[tuple[int, Attempt]]:
    """Numbered attempts, the same for the same ids."""
    for number in range(count):
        random = Random(SEED * 10_000 + number)
        yield number, random.choice((*MAKERS, form, form))(random, known)


class Answered:
    """An answer as the document's checker wants it."""

    def __init__(self, answer: HTTPResponse) -> None:
        self.status_code = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self._body: bytes = answer.body  # type: ignore[attr-defined]

    def json(self) -> Any:
        """The body as JSON; none after HEAD."""
        return json.loads(self._body) if self._body else None


class Replies:
    """A connection as ``HTTPResponse`` wants it, with one buffer for all answers: none is lost between two."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")

    def makefile(self, *_: object) -> Self:
        """What answers are read from."""
        return self

    def close(self) -> None:
        """An answer is over, not the connection."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def answers(port: int, attempt: Attempt) -> list[HTTPResponse]:
    """What comes back on a connection of its own; every answer is read whole."""
    found: list[HTTPResponse] = []
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as connection:
        replies: Any = Replies(connection)
        method = "HEAD" if attempt.data.startswith(b"HEAD ") else None
        try:
            connection.sendall(attempt.data)
            if not attempt.whole:
                connection.shutdown(socket.SHUT_WR)
            while len(found) < max(attempt.answers, 1):
                answer = HTTPResponse(replies, method=method)
                answer.begin()
                answer.body = answer.read()  # type: ignore[attr-defined]
                found.append(answer)
        except (HTTPException, ConnectionError):
            # Closed: whether that was due is judged by the number of answers.
            pass
    return found


UNREAD = {400, 413, 431, 501}
"""What the server answers to what it cannot read."""


def problems(attempt: Attempt, found: list[HTTPResponse]) -> Iterator[str]:
    """What is wrong with the answers to an attempt."""
    if len(found) < attempt.answers:
        yield f"{len(found)} of {attempt.answers} answers"
    for answer in found:
        names = {name.lower() for name, _ in answer.getheaders()}
        if answer.status >= 500 and answer.status != 501:
            yield f"status {answer.status}"
        if 300 <= answer.status < 400:
            yield f"redirect {answer.status}"
        if not str(answer.getheader("x-request-id")).startswith("req_"):
            yield f"{answer.status} without x-request-id"
        if answer.getheader("x-content-type-options") != "nosniff":
            yield f"{answer.status} may be sniffed"
        if "x-injected" in names or any(name.startswith("access-control") for name in names):
            yield f"{answer.status} with headers {names}"
        if answer.status >= 400:
            yield from misshapen(answer)
        # A refusal without a body does not say whether the application ever saw the request.
        told = answer.status not in UNREAD or bool(answer.body)  # type: ignore[attr-defined]
        if attempt.kind in DESCRIBED and told:
            method, target = attempt.data.split(b" ", 2)[:2]
            yield from described.described().problems(method.decode(), target.decode(), Answered(answer))


def misshapen(answer: HTTPResponse) -> Iterator[str]:
    """What of a refusal is not OpenAI's error object."""
    body: bytes = answer.body  # type: ignore[attr-defined]
    if answer.getheader("content-type") != "application/json":
        yield f"{answer.status} as {answer.getheader('content-type')}"
    if body:
        error = json.loads(body)["error"]
        if list(error)[:4] != ["message", "type", "param", "code"] or not (
            error["message"] and error["code"]
        ):
            yield f"{answer.status} with {body[:200]!r}"
    elif answer.getheader("content-length") in {None, "0"}:
        yield f"{answer.status} without a body"


def storm(served: Process, count: int) -> None:
    """Send the first ``count`` attempts, and hold the server to every promise."""
    for one in customer(served.url, "mallory"):
        known = known_by(unbounded(one))
        wrong = []
        poller = Poller(f"{served.url}/v1/batches?limit=1", one.token, every_seconds=0.05)
        with poller.asking():
            for number, attempt in attempts(count, known):
                if number == count // 4:
                    before = served.memory_megabytes()
                found = answers(served.port, attempt)
                shown = f"{number} {attempt.kind} {attempt.data[:200]!r}"
                wrong += [f"{what}: {shown}" for what in problems(attempt, found)]
        assert wrong == [], "\n".join(wrong)
        assert poller.statuses == {200}
        assert served.process.poll() is None
        assert served.memory_megabytes() < before + GROWTH_MEGABYTES
        assert stored(served) == expected(one)
        assert [*(served.folder / "work").iterdir(), *(served.folder / "scratch").iterdir()] == []
    silent(served, one.token)


def stored(served: Process) -> set[str]:
    """Every file below the server's folder but its log."""
    return {
        str(path.relative_to(served.folder))
        for path in served.folder.rglob("*")
        if path.is_file() and path.name != "log"
    }


def expected(one: Customer) -> set[str]:
    """The objects that the database names, of this customer, and nothing else."""
    with unit_of_work() as work:
        files = select(File.object_key).where(File.account_id == one.account_id, File.deleted_at.is_(None))
        parts = select(UploadPart.object_key).where(UploadPart.account_id == one.account_id)
        keys = [*work.session.scalars(files), *work.session.scalars(parts)]
    return {f"objects/{key}" for key in keys}


def silent(served: Process, token: str) -> None:
    """The log is JSON, line by line, and holds nothing that the customer sent."""
    text = (served.folder / "log").read_text()
    assert CANARY not in text
    assert token not in text
    assert "\x1b" not in text
    records = [json.loads(line) for line in text.splitlines()]
    assert len(records) > 100
    assert [one for one in records if one["level"] in {"ERROR", "CRITICAL"}] == []


@pytest.mark.programs
def test_two_hundred_hostile_requests(served: Process) -> None:
    """Whatever comes is answered in the shape of every error, by a server that goes on as if nothing had been."""
    storm(served, 200)


@pytest.mark.conformance
@pytest.mark.deep
@pytest.mark.timeout(900)
def test_a_thousand_hostile_requests(served: Process) -> None:
    """The same for longer."""
    storm(served, 1_000)
