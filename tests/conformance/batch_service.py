"""One customer of any OpenAI-compatible batch service, over plain HTTP: what the rows of the suite act through."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.conformance.dialect import Dialect

CHAT_ENDPOINT = "/v1/chat/completions"
EMBEDDINGS_ENDPOINT = "/v1/embeddings"
ENDED = {"completed", "failed", "expired", "cancelled"}
WITH_FILES = ENDED - {"failed"}
POLL_SECONDS = 0.25

Lines = bytes | list[Any]
"""A file: its bytes, or its lines (JSON values, or texts and bytes that go in as they are)."""


def jsonl(lines: Lines) -> bytes:
    """The file that these lines make."""
    if isinstance(lines, bytes):
        return lines
    return b"".join(_line(one) + b"\n" for one in lines)


def _line(one: Any) -> bytes:
    if isinstance(one, bytes):
        return one
    return (one if isinstance(one, str) else json.dumps(one)).encode()


def read_lines(data: bytes) -> list[Any]:
    """The JSON values of a file, split on the line feed byte only; blank lines hold none."""
    return [
        json.loads(line) for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip(b" \t\r")
    ]


class Secret(str):
    """A token that no failed test's report shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret('…')"


@dataclass
class Ended:
    """A batch that has ended, with what its result files hold; no lines where there is no file."""

    batch: dict[str, Any]
    out: list[dict[str, Any]]
    err: list[dict[str, Any]]


@dataclass
class Service:
    """One customer of a batch service; ``base_url`` ends in ``/v1``."""

    base_url: str
    token: str = field(repr=False)
    chat: str = ""
    embedding: str = ""
    chat_context: int = 8192
    dimensions: int = 0
    embedding_context: int = 0
    dialect: Dialect = Dialect()
    http: httpx.Client = field(init=False, repr=False)
    uploaded: list[str] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self.token = Secret(self.token)
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(base_url=self.base_url, headers=headers, timeout=120)

    def chat_line(self, custom_id: Any, **body: Any) -> dict[str, Any]:
        """The line ``L`` of the cases: one small chat request, with these keys of its body on top."""
        asked = {"model": self.chat, "messages": [{"role": "user", "content": "Say ok"}], "max_tokens": 4}
        return {"custom_id": custom_id, "method": "POST", "url": CHAT_ENDPOINT, "body": asked | body}

    def story_lines(self, many: int) -> list[dict[str, Any]]:
        """Lines that end one after the other, also where a fast engine runs all at once: each writes a sentence more.

        The last one keeps the engine busy for longer than results stay unseen, so that polls see the batch halfway.
        """
        story = [{"role": "user", "content": "Tell a long story about ships."}]
        return [
            self.chat_line(str(number), messages=story, max_tokens=4 + 8 * number) for number in range(many)
        ]

    def lines_to_stop(self, many: int) -> list[dict[str, Any]]:
        """Lines to be stopped midway: most end soon, and the last eighty keep any engine busy beyond a stop's grace."""
        story = [{"role": "user", "content": "Tell a long story about ships."}]
        quick = [self.chat_line(str(number), max_tokens=8) for number in range(many - 80)]
        return quick + [
            self.chat_line(str(number), messages=story, max_tokens=1_000) for number in range(many - 80, many)
        ]

    def embedding_line(self, custom_id: Any, text: Any, **body: Any) -> dict[str, Any]:
        """The line ``E`` of the cases: one embeddings request, with these keys of its body on top."""
        asked = {"model": self.embedding, "input": text}
        return {"custom_id": custom_id, "method": "POST", "url": EMBEDDINGS_ENDPOINT, "body": asked | body}

    def upload(
        self, data: bytes, filename: str = "r.jsonl", purpose: str = "batch", **fields: str
    ) -> httpx.Response:
        """Upload bytes as a multipart form."""
        form = {"purpose": purpose, **fields}
        answer = self.http.post("/files", data=form, files={"file": (filename, data)})
        if answer.status_code == 200:
            self.uploaded.append(answer.json()["id"])
        return answer

    def file(self, lines: Lines) -> str:
        """The id of a new file with these lines."""
        answer = self.upload(jsonl(lines))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    def create(
        self, file_id: Any, endpoint: Any = CHAT_ENDPOINT, window: Any = "24h", **more: Any
    ) -> httpx.Response:
        """Create a batch of a file."""
        asked = {"input_file_id": file_id, "endpoint": endpoint, "completion_window": window, **more}
        return self.http.post("/batches", json=asked)

    def created(
        self, lines: Lines, endpoint: str = CHAT_ENDPOINT, *, seconds: float = 300, **more: Any
    ) -> dict[str, Any]:
        """A new batch of these lines; waits while as many batches are open as the account may have."""
        file_id, until = self.file(lines), time.monotonic() + seconds
        while True:
            answer = self.create(file_id, endpoint, **more)
            limited = answer.status_code == 429 and answer.json()["error"]["code"] == "limit_exceeded"
            if not limited or time.monotonic() > until:
                assert answer.status_code == 200, answer.text
                return dict(answer.json())
            time.sleep(POLL_SECONDS)

    def batch(self, batch_id: str) -> dict[str, Any]:
        """The batch as it is now."""
        answer = self.http.get(f"/batches/{batch_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def facts(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What a platform of ours knows of a batch beyond OpenAI's keys, whatever its dialect shows; {} elsewhere."""
        if not self.dialect.name:
            return {}
        answer = self.http.get(httpx.URL(self.base_url).join(f"/gridline/v1/batches/{batch['id']}"))
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["explanation"])

    def polls(
        self, batch_id: str, *, seconds: float = 300, every: float = POLL_SECONDS
    ) -> Iterator[dict[str, Any]]:
        """The batch again and again, until and including its end."""
        until = time.monotonic() + seconds
        while True:
            batch = self.batch(batch_id)
            yield batch
            if batch["status"] in ENDED:
                return
            assert time.monotonic() < until, f"{batch_id} has not ended after {seconds:.0f} s: {batch}"
            time.sleep(every)

    def finished(self, batch_id: str, *, seconds: float = 300) -> dict[str, Any]:
        """The batch once it has ended."""
        return list(self.polls(batch_id, seconds=seconds))[-1]

    def content(self, file_id: str | None) -> bytes:
        """A file's bytes; none where there is no file."""
        if file_id is None:
            return b""
        answer = self.http.get(f"/files/{file_id}/content")
        assert answer.status_code == 200, answer.text
        return answer.content

    def ended(self, batch: dict[str, Any], lines: Lines) -> Ended:
        """What a batch of these lines left, with the invariants I1 to I3 of the cases held against it."""
        out, err = (read_lines(self.content(batch[name])) for name in ("output_file_id", "error_file_id"))
        one = Ended(batch, out, err)
        if batch["status"] in WITH_FILES:
            check(one, read_lines(jsonl(lines)))
        return one

    def run(self, lines: Lines, endpoint: str = CHAT_ENDPOINT, seconds: float = 300, **more: Any) -> Ended:
        """Upload, create, wait for the end and read what came; the batch must not fail, and I1 to I3 hold."""
        batch = self.finished(self.created(lines, endpoint, seconds=seconds, **more)["id"], seconds=seconds)
        assert batch["status"] in WITH_FILES, batch
        return self.ended(batch, lines)

    def expect_fail(
        self, lines: Lines, endpoint: str = CHAT_ENDPOINT, *, seconds: float = 150
    ) -> list[dict[str, Any]]:
        """The errors of a batch that has to fail at validation, without files, usage or a hold."""
        return self.errors_of(self.created(lines, endpoint, seconds=seconds)["id"], seconds=seconds)

    def errors_of(self, batch_id: str, *, seconds: float = 150) -> list[dict[str, Any]]:
        """The errors of a batch that has to fail at validation, once it has."""
        batch = self.finished(batch_id, seconds=seconds)
        assert batch["status"] == "failed", batch
        assert isinstance(batch["failed_at"], int)
        assert batch["errors"]["object"] == "list"
        errors = batch["errors"]["data"]
        assert errors
        for one in errors:
            assert {"code", "message", "param", "line"} <= one.keys(), one
            assert isinstance(one["code"], str)
            assert one["message"]
            assert one["line"] is None or isinstance(one["line"], int)
        assert (batch["output_file_id"], batch["error_file_id"]) == (None, None)
        counts = batch["request_counts"]
        assert (counts["completed"], counts["failed"]) == (0, 0)
        assert not batch["usage"] or batch["usage"]["total_tokens"] == 0
        return list(errors)

    def tidy(self) -> None:
        """Delete what was uploaded here, as far as no batch reads it any more."""
        while self.uploaded:
            self.http.delete(f"/files/{self.uploaded.pop()}")


def check(ended: Ended, lines: list[dict[str, Any]]) -> None:
    """The invariants: each line ends once, in one of the files; the counts and the usage are what the files say."""
    out, err = ([one["custom_id"] for one in part] for part in (ended.out, ended.err))
    wanted = [one["custom_id"] for one in lines]
    assert len(set(out)) == len(out), "an output line stands twice"
    assert len(set(err)) == len(err), "an error line stands twice"
    assert set(out).isdisjoint(err), "a line is in both files"
    assert set(out) | set(err) == set(wanted), "the files do not hold the lines of the input"
    counts = ended.batch["request_counts"]
    failed = counts["failed"] + counts.get("cancelled", 0)
    assert (counts["total"], counts["completed"], failed) == (len(wanted), len(out), len(err)), counts
    assert all(one["response"]["status_code"] == 200 and one["error"] is None for one in ended.out)
    used = [one["response"]["body"]["usage"] for one in ended.out]
    usage = ended.batch["usage"]
    if usage is not None:
        assert usage["input_tokens"] == sum(one["prompt_tokens"] for one in used)
        assert usage["output_tokens"] == sum(one.get("completion_tokens", 0) for one in used)
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def refused(
    response: httpx.Response, status: int, *, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """The error of a refusal: this status, OpenAI's shape as JSON, a request id, and the code and param if given."""
    assert response.status_code == status, (
        f"{response.status_code} instead of {status}: {response.text[:500]}"
    )
    assert response.headers["content-type"].startswith("application/json"), response.headers
    assert response.headers["x-request-id"]
    error = response.json()["error"]
    assert {"message", "type", "param", "code"} <= error.keys(), error
    assert isinstance(error["message"], str)
    assert error["message"]
    assert isinstance(error["type"], str)
    assert error["code"] is None or isinstance(error["code"], str)
    assert code is None or error["code"] == code, error
    assert param is None or error["param"] == param, error
    return dict(error)
