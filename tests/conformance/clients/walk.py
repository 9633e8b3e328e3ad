"""A customer's walk with openai-python, newest and oldest alike; prints what it saw as JSON.

It runs in environments that hold nothing of ours, so it knows the SDK and the standard library only. `walk.mjs` is the
same walk with openai-node: both print the same names. The SDK reads OPENAI_BASE_URL and OPENAI_API_KEY by itself.
"""

import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai

FOLDER = Path(os.environ["WALK_FOLDER"])
CHAT, EMBEDDING = os.environ["WALK_CHAT"], os.environ["WALK_EMBEDDING"]
LONGEST = os.environ["WALK_LONGEST_WINDOW"]
CROWDED_KEY = os.environ.get("WALK_CROWDED_KEY", "")
PATHS: dict[str, list[str]] = json.loads((FOLDER / "paths.json").read_text())
ENDED = {"completed", "failed", "expired", "cancelled"}
NOBODY = "0" * 24


class Counted(httpx.BaseTransport):
    """The real way to the server, with every attempt noted; an answer can be lost on its way back."""

    def __init__(self) -> None:
        self.inner = httpx.HTTPTransport()
        self.attempts: list[dict[str, Any]] = []
        self.lose_next_create = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Pass the request on and note it."""
        answer = self.inner.handle_request(request)
        self.attempts.append(
            {
                "call": f"{request.method} {request.url.path.partition('/v1')[2]}",
                "status": answer.status_code,
                "retry_count": request.headers.get("x-stainless-retry-count"),
                "idempotency_key": request.headers.get("idempotency-key"),
                "chunked": request.headers.get("transfer-encoding") == "chunked",
                "should_retry": answer.headers.get("x-should-retry"),
                "retry_after": answer.headers.get("retry-after"),
            }
        )
        if self.lose_next_create and self.attempts[-1]["call"] == "POST /batches":
            self.lose_next_create = False
            answer.read()
            answer.close()
            raise httpx.ReadError("the answer was lost", request=request)
        return answer

    def close(self) -> None:
        """Close the real way."""
        self.inner.close()


class Pipe(io.RawIOBase):
    """Bytes of unknown length, as from another program: the SDK has to send them chunked."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.rest = io.BytesIO(data)

    def readable(self) -> bool:
        """Only from front to end."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        return self.rest.readinto(buffer)


def client_on(way: Counted) -> Any:
    """A client of this transport; the newest SDK takes it, though its types name its own copy of httpx only."""
    return httpx.Client(transport=way)


WAY = Counted()
CLIENT = openai.OpenAI(http_client=client_on(WAY), timeout=60)


def step(value: Any, name: str) -> Any:
    """One step of a path: an attribute, or what a plain dict or list holds (old SDKs type less)."""
    if isinstance(value, list):
        return value[int(name)]
    return value[name] if isinstance(value, dict) else getattr(value, name)


def seen(thing: Any, kind: str) -> dict[str, Any]:
    """What a customer's code reads from a typed object, path by path; what is not there stands as missing."""
    found: dict[str, Any] = {}
    for path in PATHS[kind]:
        value = thing
        try:
            for name in path.split("."):
                value = step(value, name)
            found[path] = value
        except (AttributeError, KeyError, IndexError):
            found[path] = "(missing)"
    return found


def refusal(call: Callable[[], Any], way: Counted = WAY) -> dict[str, Any]:
    """What the SDK makes of a refusal, and how often it asked."""
    before = len(way.attempts)
    try:
        return {"answered": str(call())}
    except openai.APIStatusError as error:
        told = {"class": type(error).__name__, "status": error.status_code, "message": error.message}
        told |= {name: getattr(error, name) for name in ("code", "param", "type", "request_id")}
        told["limit"] = error.body.get("limit") if isinstance(error.body, dict) else None
    return told | {"attempts": way.attempts[before:]}


def walk_files() -> dict[str, Any]:
    """Upload in three ways, look, list in pages, download whole and in part, delete."""
    path, data = FOLDER / "chat.jsonl", (FOLDER / "chat.jsonl").read_bytes()
    begun = time.monotonic()
    files = {
        "path": CLIENT.files.create(file=path, purpose="batch"),
        "bytes": CLIENT.files.create(file=('réq "x".jsonl', data), purpose="batch"),
        "stream": CLIENT.files.create(file=("stream.jsonl", Pipe(data)), purpose="batch"),  # type: ignore[arg-type]
    }
    seconds = time.monotonic() - begun
    chunked = [one["chunked"] for one in WAY.attempts if one["call"] == "POST /files"]
    content = {name: CLIENT.files.content(one.id).content == data for name, one in files.items()}
    part = CLIENT.files.content(files["path"].id, extra_headers={"Range": "bytes=2-10"})
    begun = time.monotonic()
    waited = CLIENT.files.wait_for_processing(files["stream"].id)
    waited_seconds = time.monotonic() - begun
    before = len(WAY.attempts)
    listed = [one.id for one in CLIENT.files.list(limit=2, purpose="batch")]  # type: ignore[call-arg,unused-ignore]
    return {
        "uploaded": {name: seen(one, "file") for name, one in files.items()},
        "seconds": seconds,
        "chunked": chunked,
        "retrieved": seen(CLIENT.files.retrieve(files["bytes"].id), "file"),
        "content": content,
        "range": {"status": part.response.status_code, "is_the_part": part.content == data[2:11]},
        "waited": {"status": waited.status, "seconds": waited_seconds},
        "listed": {"ids": listed, "pages": len(WAY.attempts) - before},
        "deleted": CLIENT.files.delete(files["stream"].id).to_dict(),
        "deleted_again": refusal(lambda: CLIENT.files.delete(files["stream"].id)),
    }


def walk_uploads() -> dict[str, Any]:
    """Upload a file in parts, with the SDK's own helper."""
    data = (FOLDER / "chat.jsonl").read_bytes()
    upload = CLIENT.uploads.upload_file_chunked(
        file=data, filename="parts.jsonl", bytes=len(data), mime_type="application/jsonl", purpose="batch", part_size=100
    )  # fmt: skip
    file = upload.file
    return {
        "upload": seen(upload, "upload"),
        "parts": sum(one["call"].endswith("/parts") for one in WAY.attempts),
        "content": file is not None and CLIENT.files.content(file.id).content == data,
    }


def walk_models() -> dict[str, Any]:
    """List the models, look at one, miss one."""
    return {
        "ids": [one.id for one in CLIENT.models.list()],
        "one": seen(CLIENT.models.retrieve(CHAT), "model"),
        "missing": refusal(lambda: CLIENT.models.retrieve("no/such-model")),
    }


def create(name: str, endpoint: Any = "/v1/chat/completions", **more: Any) -> Any:
    """A new batch of a file in the folder."""
    file = CLIENT.files.create(file=FOLDER / name, purpose="batch")
    return CLIENT.batches.create(
        input_file_id=file.id, endpoint=endpoint, completion_window="24h", metadata={"walk": name}, **more
    )


def finished(batch: Any) -> tuple[Any, list[float]]:
    """The batch once it has ended, and the seconds that each look took."""
    looks = []
    until = time.monotonic() + 240
    while batch.status not in ENDED and time.monotonic() < until:
        time.sleep(0.5)
        begun = time.monotonic()
        batch = CLIENT.batches.retrieve(batch.id)
        looks.append(time.monotonic() - begun)
    return batch, looks


def results(batch: Any) -> dict[str, Any]:
    """An ended batch, and what stands in its output file."""
    lines: list[Any] = []
    if batch.output_file_id:
        text = CLIENT.files.content(batch.output_file_id).text
        lines = [json.loads(line) for line in text.split("\n") if line]
    return {"batch": seen(batch, "batch"), "lines": lines}


def walk_batches() -> dict[str, Any]:
    """A chat batch, an embeddings batch with the longest window, a cancelled one, a bad one, and one whose answer was lost."""
    begun = time.monotonic()
    chat = create("chat.jsonl")
    create_seconds = time.monotonic() - begun
    in_use = refusal(lambda: CLIENT.files.delete(chat.input_file_id))
    embeddings = create("embeddings.jsonl", "/v1/embeddings", extra_body={"completion_window": LONGEST})
    cancelled = create("chat.jsonl")
    cancelling = CLIENT.batches.cancel(cancelled.id)
    bad = create("bad.jsonl")
    before = len(WAY.attempts)
    WAY.lose_next_create = True
    lost = create("chat.jsonl")
    lost_attempts = [one for one in WAY.attempts[before:] if one["call"] == "POST /batches"]
    CLIENT.batches.cancel(lost.id)
    made = [chat, embeddings, cancelled, bad, lost]
    ended, looks = zip(*map(finished, made), strict=True)
    before = len(WAY.attempts)
    listed = [one for one in CLIENT.batches.list(limit=2)]  # noqa: C416 - the loop is what a customer writes
    pages = len(WAY.attempts) - before
    return {
        "created": seen(chat, "batch"),
        "create_seconds": create_seconds,
        "look_seconds": max(max(one, default=0.0) for one in looks),
        "chat": results(ended[0]),
        "embeddings": results(ended[1]),
        "cancelling": seen(cancelling, "batch"),
        "cancelled": seen(ended[2], "batch"),
        "bad": seen(ended[3], "failed_batch"),
        "lost": {"attempts": lost_attempts, "file": lost.input_file_id, "id": lost.id},
        "lost_made": [one.id for one in listed if one.input_file_id == lost.input_file_id],
        "listed": {"ids": [one.id for one in listed], "pages": pages, "made": [one.id for one in made]},
        "in_use": in_use,
        "cancel_ended": refusal(lambda: CLIENT.batches.cancel(chat.id)),
    }


def walk_refusals() -> dict[str, Any]:
    """One refusal of each kind that an SDK has a class for."""
    file = CLIENT.files.create(file=FOLDER / "bad.jsonl", purpose="batch")
    keyed: dict[str, Any] = {
        "input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h",
        "extra_headers": {"Idempotency-Key": f"walk-{file.id}"},
    }  # fmt: skip
    CLIENT.batches.create(**keyed)
    stranger = openai.OpenAI(api_key="gl_live_nobody", http_client=client_on(WAY), timeout=60)

    def batch_of(file_id: str, endpoint: Any) -> Any:
        return CLIENT.batches.create(input_file_id=file_id, endpoint=endpoint, completion_window="24h")

    with (FOLDER / "too_large.jsonl").open("rb") as too_large:
        return {
            "missing_file": refusal(lambda: CLIENT.files.retrieve(f"file-{NOBODY}")),
            "missing_batch": refusal(lambda: CLIENT.batches.retrieve(f"batch_{NOBODY}")),
            "missing_input": refusal(lambda: batch_of(f"file-{NOBODY}", "/v1/chat/completions")),
            "bad_endpoint": refusal(lambda: batch_of(file.id, "/v1/nothing")),
            "bad_extension": refusal(lambda: CLIENT.files.create(file=("notes.txt", b"{}"), purpose="batch")),
            "bad_key": refusal(stranger.files.list),
            "key_reused": refusal(lambda: CLIENT.batches.create(**keyed, metadata={"other": "body"})),
            "too_large": refusal(lambda: CLIENT.files.create(file=too_large, purpose="batch")),
        }


def walk_crowd() -> dict[str, Any]:
    """Open batches until the account may open no more."""
    if not CROWDED_KEY:
        return {"skipped": True}
    way = Counted()
    client = openai.OpenAI(api_key=CROWDED_KEY, http_client=client_on(way), timeout=60)
    file = client.files.create(file=FOLDER / "chat.jsonl", purpose="batch")
    made: list[Any] = []

    def one_more() -> None:
        made.append(
            client.batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            )
        )

    told: dict[str, Any] = {}
    while len(made) < 5 and "class" not in told:
        told = refusal(one_more, way)
    for one in made:
        client.batches.cancel(one.id)
    client.close()
    return {"made": len(made), "refusal": told}


SCENES: dict[str, Callable[[], dict[str, Any]]] = {
    "files": walk_files, "uploads": walk_uploads, "models": walk_models, "batches": walk_batches,
    "refusals": walk_refusals, "crowd": walk_crowd,
}  # fmt: skip


def told() -> Iterator[tuple[str, Any]]:
    """What each scene saw, or what it died of."""
    for name, scene in SCENES.items():
        try:
            yield name, scene()
        except Exception:  # noqa: BLE001 - one scene's death is that scene's result
            yield name, {"raised": traceback.format_exc(limit=4)}


def main() -> None:
    """Walk, and print what was seen."""
    report: dict[str, Any] = {"sdk": f"openai-python {openai.__version__}", **dict(told())}
    report["attempts"] = WAY.attempts
    CLIENT.close()
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
