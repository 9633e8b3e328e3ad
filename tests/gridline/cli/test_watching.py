"""Following a batch, and trying its failed lines again: what happens when the API comes and goes."""

import json
from collections.abc import Iterator

import httpx
import pytest

from gridline.cli import sending
from gridline.cli.output import Output
from gridline.cli.watching import DETACHED, POLL_SECONDS_MAX, exit_status, watch
from gridline.client import Batch, Client, ClientError, retrying

CREATED = 1_767_614_400


def body(status: str = "in_progress", *, failed: int = 0, **more: object) -> dict[str, object]:
    """A batch of three lines."""
    counts = {"total": 3, "completed": 3 - failed, "failed": failed, "cancelled": 0}
    return {"id": "batch_a", "status": status, "created_at": CREATED, "request_counts": counts, **more}


def client(answers: Iterator[object]) -> Client:
    """A client that gets these answers: a body, a status, or an error to raise."""

    def answer(request: httpx.Request) -> httpx.Response:
        one = next(answers)
        if isinstance(one, Exception):
            raise one
        if isinstance(one, int):
            return httpx.Response(one, json={"error": {"message": "No.", "code": None}}, request=request)
        if isinstance(one, bytes):
            return httpx.Response(200, content=one, request=request)
        return httpx.Response(200, json=one, request=request)

    return Client("http://api/v1", "token", transport=httpx.MockTransport(answer))


def test_a_watch_outlives_the_api(capsys: pytest.CaptureFixture[str]) -> None:
    """While it is away, slow or busy the watch waits longer and longer; each change is one line, nothing is said twice."""
    slept: list[float] = []
    away = [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), 503, 429, 502, 500]
    batch = watch(
        client(iter([body(), body(), *away, body("completed")])),
        "batch_a",
        Output(as_json=True),
        sleep=slept.append,
    )
    assert batch.status == "completed"
    assert [json.loads(one)["status"] for one in capsys.readouterr().out.splitlines()] == [
        "in_progress",
        "completed",
    ]
    assert slept == sorted(slept)
    assert slept[-1] == POLL_SECONDS_MAX


def test_what_cannot_heal_is_said_at_once() -> None:
    """A token that is not taken, or a batch that is not there, is no reason to wait."""
    for status in (401, 403, 404):
        with pytest.raises(ClientError):
            watch(client(iter([status])), "batch_a", None, sleep=lambda _: pytest.fail("it waits"))


def test_ctrl_c_detaches(capsys: pytest.CaptureFixture[str]) -> None:
    """The batch goes on, and the way back is said on stderr."""

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as left:
        watch(client(iter([body()])), "batch_a", None, sleep=interrupted)
    assert left.value.code == DETACHED
    assert "gridline batches watch batch_a" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "failed", "code"),
    [("completed", 0, 0), ("completed", 1, 3), ("failed", 3, 1), ("expired", 1, 4), ("cancelled", 0, 4)],
)
def test_statuses_for_scripts(status: str, failed: int, code: int) -> None:
    """0 all done, 3 some lines failed, 4 stopped before its end, 1 failed."""
    assert exit_status(Batch.from_json(body(status, failed=failed))) == code


def test_a_create_whose_answer_is_lost_is_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again under the same key, and a refusal is not."""
    monkeypatch.setattr(sending, "PAUSES_SECONDS", (0.0, 0.0))
    keys = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) < 3:
            raise httpx.ReadTimeout("lost", request=request)
        return httpx.Response(200, json=body())

    caller = Client("http://api/v1", "token", transport=httpx.MockTransport(answer))
    made = sending.create_once(caller, "file-a", endpoint="/v1/embeddings", window="24h", metadata=None)
    assert made.id == "batch_a"
    assert (len(keys), len(set(keys))) == (3, 1)
    with pytest.raises(ClientError):
        sending.create_once(
            client(iter([400])), "file-a", endpoint="/v1/embeddings", window="24h", metadata=None
        )


def test_failed_lines_are_the_requests_as_they_were() -> None:
    """Byte for byte, in their order, wherever the stream is cut; lines with a result are left out."""
    lines = [json.dumps({"custom_id": f"c{number}", "text": "é" * number}).encode() for number in range(5)]
    errors = b"\n".join(json.dumps({"custom_id": f"c{number}"}).encode() for number in (3, 1)) + b"\n"
    batch = Batch.from_json(body("completed", input_file_id="file-in", error_file_id="file-err"))
    caller = client(iter([errors, b"\r\n".join(lines)]))
    wanted = retrying.failed_ids(caller, batch)
    assert wanted == {"c1", "c3"}

    class Kept(list[bytes]):
        write = list.append

    kept = Kept()
    assert retrying.write_failed(caller, batch, wanted, kept) == 2  # type: ignore[arg-type]
    assert [one.strip() for one in kept] == [lines[1], lines[3]]
    for size in (1, 7, 1_000):
        whole = b"\n".join(lines)
        pieces = (whole[at : at + size] for at in range(0, len(whole), size))
        assert list(retrying.lines_of(pieces)) == lines


def test_without_an_error_file_nothing_failed() -> None:
    """A batch whose every line has a result has nothing to try again."""
    assert retrying.failed_ids(client(iter([])), Batch.from_json(body("completed"))) == set()
