"""OpenAI's Uploads API with the SDK as it is, and every refusal on the wire."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5
from pathlib import Path

import httpx
import httpx2
import openai
import pytest

from api import rates
from api.windows import Windows
from gridline import ids, limits
from gridline.clock import FrozenClock
from gridline.storage.objects import Store
from tests.api.conftest import LINES, Customer
from tests.api.test_upload import B, form, part

CREATE = {"filename": "r.jsonl", "purpose": "batch", "bytes": len(LINES), "mime_type": "application/jsonl"}
PART_BYTES = 100


def open_upload(customer: Customer, size: int = len(LINES)) -> str:
    """A new upload; its id."""
    return customer.sdk.uploads.create(
        filename="r.jsonl", purpose="batch", bytes=size, mime_type="application/jsonl"
    ).id


def send(customer: Customer, upload_id: str, data: bytes = LINES) -> str:
    """One part; its id."""
    return customer.sdk.uploads.parts.create(upload_id, data=data).id


def post_part(
    customer: Customer, upload_id: str, body: bytes | Iterator[bytes], **headers: str
) -> httpx.Response:
    """Send a body as the form of a part."""
    given = {"Content-Type": f"multipart/form-data; boundary={B}", **headers}
    return customer.http.post(f"/v1/uploads/{upload_id}/parts", content=body, headers=given)


def test_the_sdk_uploads_a_file_in_chunks(ann: Customer, store: Store, tmp_path: Path) -> None:
    """upload_file_chunked with a path and with bytes: several parts, one file, from which a batch is created."""
    data = LINES * 5
    path = tmp_path / "requests.jsonl"
    path.write_bytes(data)
    digest = md5(data, usedforsecurity=False).hexdigest()
    from_disk = ann.sdk.uploads.upload_file_chunked(
        file=path, mime_type="application/jsonl", purpose="batch", part_size=PART_BYTES, md5=digest
    )
    from_memory = ann.sdk.uploads.upload_file_chunked(
        file=data, filename="m.jsonl", bytes=len(data), mime_type="text/plain", purpose="batch",
        part_size=PART_BYTES,
    )  # fmt: skip
    assert len(data) > 3 * PART_BYTES
    for upload, name in ((from_disk, "requests.jsonl"), (from_memory, "m.jsonl")):
        assert (upload.object, upload.status, upload.bytes, upload.filename, upload.purpose) == (
            "upload", "completed", len(data), name, "batch",
        )  # fmt: skip
        assert upload.expires_at == upload.created_at + 3600
        assert upload.file is not None
        assert upload.file == ann.sdk.files.retrieve(upload.file.id)
        assert (upload.file.bytes, upload.file.filename, upload.file.status) == (len(data), name, "processed")
        assert ann.sdk.files.content(upload.file.id).read() == data
        assert ann.batch(upload.file.id)["input_file_id"] == upload.file.id
    assert store.list("uploads/") == []


def test_the_async_sdk_uploads_a_file_in_chunks(ann: Customer, address: str) -> None:
    """The asynchronous helper does the same."""

    async def upload() -> openai.types.Upload:
        async with (
            httpx2.AsyncClient(timeout=20, verify=False) as plain,
            openai.AsyncOpenAI(base_url=f"{address}/v1", api_key=ann.token, http_client=plain) as sdk,
        ):
            return await sdk.uploads.upload_file_chunked(
                file=LINES, filename="a.jsonl", bytes=len(LINES), mime_type="x", purpose="batch",
                part_size=PART_BYTES,
            )  # fmt: skip

    made = asyncio.run(upload())
    assert made.file is not None
    assert ann.sdk.files.content(made.file.id).read() == LINES


def test_parts_may_come_side_by_side_in_any_order(ann: Customer) -> None:
    """Eight parts at once, in reverse: the file's order is that of part_ids, with the expiry that was asked for."""
    pieces = [LINES[at : at + 40] for at in range(0, len(LINES), 40)]
    upload = ann.sdk.uploads.create(
        filename="r.jsonl", purpose="batch", bytes=len(LINES), mime_type="application/jsonl",
        expires_after={"anchor": "created_at", "seconds": 864_000},
    )  # fmt: skip
    assert (upload.status, upload.file) == ("pending", None)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda one: ann.sdk.uploads.parts.create(upload.id, data=one), pieces[::-1]))
    assert {(one.object, one.upload_id) for one in made} == {("upload.part", upload.id)}
    assert all(one.created_at >= upload.created_at for one in made)
    done = ann.sdk.uploads.complete(upload.id, part_ids=[one.id for one in made[::-1]])
    assert done.file is not None
    assert done.file.expires_at == done.file.created_at + 864_000
    assert ann.sdk.files.content(done.file.id).read() == LINES


def test_completing_twice_is_one_file(ann: Customer) -> None:
    """The same completion answers the same upload; with other parts it is refused, and SDKs do not try again."""
    upload_id = open_upload(ann)
    part_id = send(ann, upload_id)
    first, again = (ann.sdk.uploads.complete(upload_id, part_ids=[part_id]) for _ in range(2))
    assert first == again
    with pytest.raises(openai.BadRequestError) as caught:
        ann.sdk.uploads.complete(upload_id, part_ids=[ids.new("upload_part")])
    assert caught.value.code == "upload_not_pending"
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert len(list(ann.sdk.files.list())) == 1


def test_cancelling_ends_an_upload(ann: Customer, store: Store) -> None:
    """A cancelled upload shows it, twice too, keeps nothing, and takes neither parts nor a completion."""
    upload_id = open_upload(ann)
    part_id = send(ann, upload_id)
    first, again = (ann.sdk.uploads.cancel(upload_id) for _ in range(2))
    assert first == again
    assert (first.status, first.file) == ("cancelled", None)
    assert store.list("uploads/") == []
    for call in (
        lambda: send(ann, upload_id),
        lambda: ann.sdk.uploads.complete(upload_id, part_ids=[part_id]),
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            call()
        assert caught.value.code == "upload_not_pending"
    done = open_upload(ann)
    ann.sdk.uploads.complete(done, part_ids=[send(ann, done)])
    with pytest.raises(openai.BadRequestError) as caught:
        ann.sdk.uploads.cancel(done)
    assert (caught.value.code, caught.value.response.headers["x-should-retry"]) == (
        "upload_not_pending",
        "false",
    )


def test_an_expired_upload_is_refused_by_every_call(ann: Customer, clock: FrozenClock) -> None:
    """An hour after its creation an upload can neither grow nor end, though nobody has swept it."""
    upload_id = open_upload(ann)
    part_id = send(ann, upload_id)
    clock.advance(hours=1)
    answers = [
        post_part(ann, upload_id, form(part("data", LINES, "p"))),
        ann.http.post(f"/v1/uploads/{upload_id}/complete", json={"part_ids": [part_id]}),
        ann.http.post(f"/v1/uploads/{upload_id}/cancel"),
    ]
    for answer in answers:
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "upload_not_pending")
        assert "status 'expired'" in error["message"]


@pytest.mark.parametrize("step", [1, 17])
def test_a_part_of_unknown_length_is_taken(ann: Customer, step: int) -> None:
    """Transfer-Encoding: chunked, as Node sends a stream, with any file name and type."""
    body = form(part("data", LINES, ""))
    upload_id = open_upload(ann)
    answer = post_part(ann, upload_id, (body[at : at + step] for at in range(0, len(body), step)))
    assert answer.status_code == 200
    assert ann.sdk.uploads.complete(upload_id, part_ids=[answer.json()["id"]]).status == "completed"


BROKEN = {
    "nothing": (form(), 400, "missing_required_parameter", "data"),
    "empty body": (b"", 400, "invalid_multipart", None),
    "cut short": (form(part("data", LINES, "p"))[:-20], 400, "invalid_multipart", None),
    "no bytes": (form(part("data", b"", "p")), 400, "empty_part", "data"),
    "as a field": (form(part("data", LINES)), 400, "invalid_type", "data"),
    "two parts": (form(part("data", b"a", "p"), part("data", b"b", "p")), 400, "invalid_value", "data"),
    "another file": (form(part("file", LINES, "p")), 400, "unknown_parameter", "file"),
    "another field": (form(part("data", LINES, "p"), part("x", b"1")), 400, "unknown_parameter", "x"),
    "too many bytes": (form(part("data", LINES * 3, "p")), 413, "upload_too_large", "data"),
}


def test_broken_parts_are_refused_by_name_and_leave_nothing(ann: Customer, store: Store) -> None:
    """Each has its status, code and parameter; no object of it stays, and the upload can go on."""
    upload_id = open_upload(ann)
    seen = {}
    for name, (body, *_) in BROKEN.items():
        answer = post_part(ann, upload_id, body)
        error = answer.json()["error"]
        seen[name] = (answer.status_code, error["code"], error["param"])
        assert answer.headers["x-should-retry"] == "false"
    assert seen == {name: tuple(wanted) for name, (_, *wanted) in BROKEN.items()}
    assert store.list("uploads/") == []
    assert send(ann, upload_id)


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Content-Type": "application/json"}, 415), ({"Content-Encoding": "gzip"}, 415)],
)
def test_other_bodies_of_a_part_are_refused(ann: Customer, headers: dict[str, str], status: int) -> None:
    """No form, or a compressed one: refused as JSON."""
    answer = post_part(ann, open_upload(ann), form(part("data", LINES, "p")), **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, "unsupported_media_type")


def test_a_part_has_a_cap(ann: Customer, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte over the cap of a part is a readable 413 with the limit."""
    monkeypatch.setattr(limits, "UPLOAD_PART_BYTES_MAX", len(LINES))
    upload_id = open_upload(ann, len(LINES) * 2)
    send(ann, upload_id)
    with pytest.raises(openai.APIStatusError) as caught:
        send(ann, upload_id, LINES + b"\n")
    assert (caught.value.status_code, caught.value.code) == (413, "part_too_large")
    assert len(store.list("uploads/")) == 1


def test_wrong_creates_are_refused_by_name(ann: Customer) -> None:
    """The wire shows the same codes as the rules: of keys, types, sizes and bodies."""
    cases = [
        ({**CREATE, "purpose": "vision"}, 400, "invalid_value", "purpose"),
        ({**CREATE, "bytes": 200_000_001}, 413, "file_too_large", "bytes"),
        ({**CREATE, "bytes": 0}, 400, "integer_below_min_value", "bytes"),
        ({**CREATE, "filename": "r.csv"}, 400, "invalid_file_format", "filename"),
        ({**CREATE, "x": 1}, 400, "unknown_parameter", "x"),
        ({}, 400, "missing_required_parameter", "filename"),
        ([], 400, "invalid_type", None),
    ]
    for body, status, code, param in cases:
        answer = ann.http.post("/v1/uploads", json=body)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert ann.http.post("/v1/uploads", content=b"{}").status_code == 415


def test_wrong_completions_are_refused_by_name(ann: Customer) -> None:
    """Parts, sizes, digests and content: each refusal leaves the upload to be completed rightly."""
    upload_id = open_upload(ann)
    part_id, other = send(ann, upload_id), send(ann, open_upload(ann))
    bad = open_upload(ann)
    bad_id = send(ann, bad, b"x" * len(LINES))
    cases: list[tuple[str, object, str, str | None]] = [
        (upload_id, {}, "missing_required_parameter", "part_ids"),
        (upload_id, {"part_ids": []}, "empty_array", "part_ids"),
        (upload_id, {"part_ids": [""] * 1001}, "array_above_max_length", "part_ids"),
        (upload_id, {"part_ids": [other]}, "invalid_value", "part_ids"),
        (upload_id, {"part_ids": [part_id] * 2}, "invalid_value", "part_ids"),
        (upload_id, {"part_ids": [part_id, send(ann, upload_id, b"x")]}, "upload_bytes_mismatch", "part_ids"),
        (upload_id, {"part_ids": [part_id], "md5": "0" * 32}, "md5_mismatch", "md5"),
        (bad, {"part_ids": [bad_id]}, "invalid_json_line", "file"),
    ]
    for one, body, code, param in cases:
        answer = ann.http.post(f"/v1/uploads/{one}/complete", json=body)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, code, param)
    assert list(ann.sdk.files.list()) == []
    assert ann.sdk.uploads.complete(upload_id, part_ids=[part_id]).status == "completed"
    assert ann.sdk.uploads.cancel(bad).status == "cancelled"


def test_pending_uploads_have_a_limit(ann: Customer, bob: Customer) -> None:
    """The twenty-first is a 429 with limit and use that SDKs do not repeat; another account is not concerned."""
    for _ in range(20):
        open_upload(ann)
    with pytest.raises(openai.RateLimitError) as caught:
        open_upload(ann)
    assert caught.value.code == "limit_exceeded"
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert caught.value.response.json()["error"]["limit"] == {
        "name": "uploads_pending", "limit": 20, "current": 20, "unit": "uploads",
    }  # fmt: skip
    assert open_upload(bob)


def test_foreign_uploads_are_missing(ann: Customer, bob: Customer) -> None:
    """Another account's upload is the very 404 of a random id on every route, whatever the body."""
    upload_id = open_upload(ann)
    part_id = send(ann, upload_id)
    for body in (b"", form(part("data", LINES, "p"))):
        for one in (upload_id, ids.new("upload"), "upload_x", "%00"):
            answers = [
                post_part(bob, one, body),
                bob.http.post(f"/v1/uploads/{one}/complete", json={"part_ids": [part_id]}),
                bob.http.post(f"/v1/uploads/{one}/complete", content=body),
                bob.http.post(f"/v1/uploads/{one}/cancel", content=body),
            ]
            shown = "\0" if one == "%00" else one
            wanted = {
                "message": f"No such Upload object: {shown}", "type": "invalid_request_error",
                "param": "upload_id", "code": "not_found",
            }  # fmt: skip
            assert [(answer.status_code, answer.json()["error"]) for answer in answers] == [(404, wanted)] * 4
    assert ann.sdk.uploads.complete(upload_id, part_ids=[part_id]).status == "completed"


def test_parts_count_as_uploaded_bytes(ann: Customer, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour's bytes are shared by files and parts; the part that goes beyond is a 429 and leaves nothing."""
    fresh = Windows("memory://")
    monkeypatch.setattr(rates, "windows", lambda: fresh)
    monkeypatch.setattr(limits, "UPLOADED_BYTES_PER_HOUR_MAX", len(LINES) + 300)
    upload_id = open_upload(ann)
    part_id = send(ann, upload_id)
    with pytest.raises(openai.RateLimitError):
        send(ann, upload_id)
    with pytest.raises(openai.RateLimitError):
        ann.file()
    assert len(store.list("uploads/")) == 1
    assert ann.sdk.uploads.complete(upload_id, part_ids=[part_id]).status == "completed"
