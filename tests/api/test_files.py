"""Files as the unmodified SDK sees them, and as raw bytes on the wire."""

import openai
import pytest

from gridline.storage.objects import Store
from tests.api.conftest import LINES, Customer, line


def test_a_file_makes_the_round_trip(ann: Customer) -> None:
    """Upload, look, list, download, delete: the SDK finds what it expects at every step."""
    made = ann.sdk.files.create(file=("réq.jsonl", LINES), purpose="batch")
    assert (made.object, made.bytes, made.filename, made.purpose) == (
        "file",
        len(LINES),
        "réq.jsonl",
        "batch",
    )
    assert made.status == "processed"
    assert made.expires_at == made.created_at + 2_592_000
    assert ann.sdk.files.retrieve(made.id) == made
    assert ann.sdk.files.wait_for_processing(made.id).id == made.id
    assert [one.id for one in ann.sdk.files.list()] == [made.id]
    assert ann.sdk.files.content(made.id).content == LINES
    gone = ann.sdk.files.delete(made.id)
    assert (gone.id, gone.object, gone.deleted) == (made.id, "file", True)
    assert list(ann.sdk.files.list()) == []


def test_the_object_has_every_key_and_no_other(ann: Customer) -> None:
    """A missing key is an AttributeError in a customer's code; both base paths answer alike."""
    file_id = ann.file()
    shown = ann.http.get(f"/v1/files/{file_id}").json()
    assert shown == ann.http.get(f"/openai/v1/files/{file_id}").json()
    assert set(shown) == {
        "id", "object", "bytes", "created_at", "expires_at", "filename", "purpose", "status", "status_details",
    }  # fmt: skip
    assert shown["status_details"] is None


def test_an_expiry_can_be_asked_for(ann: Customer) -> None:
    """expires_after is honoured beyond the promised seven days."""
    made = ann.sdk.files.create(
        file=("r.jsonl", LINES), purpose="batch", expires_after={"anchor": "created_at", "seconds": 864_000}
    )
    assert made.expires_at == made.created_at + 864_000


def test_the_sdk_walks_every_page(ann: Customer) -> None:
    """Seven files in pages of three: each once, newest first or oldest first."""
    made = [ann.file() for _ in range(7)]
    assert [one.id for one in ann.sdk.files.list(limit=3)] == made[::-1]
    assert [one.id for one in ann.sdk.files.list(limit=3, order="asc")] == made
    assert [one.id for one in ann.sdk.files.list(purpose="batch_output")] == []


def test_pages_have_their_keys_even_when_empty(ann: Customer) -> None:
    """first_id and last_id are null past the end, has_more is exact."""
    empty: dict[str, object] = {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }
    assert ann.http.get("/v1/files").json() == empty
    first, second = ann.file(), ann.file()
    page = ann.http.get("/v1/files?limit=1").json()
    assert (page["first_id"], page["last_id"], page["has_more"]) == (second, second, True)
    page = ann.http.get(f"/v1/files?limit=1&after={second}").json()
    assert (page["first_id"], page["has_more"]) == (first, False)
    assert ann.http.get(f"/v1/files?after={first}").json() == empty


@pytest.mark.parametrize(
    ("query", "param"),
    [("limit=0", "limit"), ("limit=-1", "limit"), ("limit=10001", "limit"), ("limit=abc", "limit"),
     ("limit=1.5", "limit"), ("limit=", "limit"), ("limit=1&limit=2", "limit"), ("limit=٣", "limit"),
     ("order=up", "order"), ("purpose=none", "purpose")],
)  # fmt: skip
def test_a_wrong_page_is_refused_by_name(ann: Customer, query: str, param: str) -> None:
    """A bad query is a 400 that names the parameter, never page one."""
    answer = ann.http.get(f"/v1/files?{query}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_an_unknown_cursor_is_refused(ann: Customer, bob: Customer) -> None:
    """An unknown, foreign or odd cursor is a 404, never page one again."""
    foreign = bob.file()
    for after in (foreign, "file-" + "a" * 24, "x", "%00"):
        assert ann.http.get(f"/v1/files?after={after}").status_code == 404


def test_deleting_a_used_file_is_refused_once(ann: Customer) -> None:
    """409 file_in_use, told not to retry, and the file is still there."""
    file_id = ann.file()
    ann.batch(file_id)
    with pytest.raises(openai.ConflictError) as caught:
        ann.sdk.files.delete(file_id)
    assert caught.value.code == "file_in_use"
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert ann.sdk.files.content(file_id).content == LINES


def test_a_deleted_file_is_gone_everywhere(ann: Customer, store: Store) -> None:
    """Row, content and object: missing, also for a second delete."""
    file_id = ann.file()
    ann.sdk.files.delete(file_id)
    assert store.list("") == []
    for call in (ann.sdk.files.delete, ann.sdk.files.retrieve, ann.sdk.files.content):
        with pytest.raises(openai.NotFoundError):
            call(file_id)


def test_a_download_says_what_it_is(ann: Customer) -> None:
    """Exact length, an attachment under the customer's name, never sniffed, never cached."""
    made = ann.sdk.files.create(file=('r"é.jsonl', LINES), purpose="batch")
    answer = ann.http.get(f"/v1/files/{made.id}/content")
    assert answer.headers["content-length"] == str(len(LINES))
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"r_?.jsonl\"; filename*=UTF-8''r%22%C3%A9.jsonl"
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("bytes=0-0", 0, 1), ("bytes=10-19", 10, 20), ("bytes=10-", 10, None), ("bytes=-5", -5, None),
     ("bytes=5-999999999", 5, None)],
)  # fmt: skip
def test_a_range_gets_its_bytes(ann: Customer, asked: str, start: int, end: int | None) -> None:
    """206 with the exact slice and where it lies."""
    file_id = ann.file()
    answer = ann.http.get(f"/v1/files/{file_id}/content", headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == LINES[start:end]
    first = start % len(LINES)
    assert answer.headers["content-range"] == f"bytes {first}-{first + len(answer.content) - 1}/{len(LINES)}"


@pytest.mark.parametrize("asked", ["bytes=0-1,4-5", "lines=1-2", "bytes=x", "bytes=5-2"])
def test_a_range_we_do_not_speak_gets_the_whole(ann: Customer, asked: str) -> None:
    """Several ranges, other units and nonsense are answered with 200 and everything."""
    answer = ann.http.get(f"/v1/files/{ann.file()}/content", headers={"Range": asked})
    assert (answer.status_code, answer.content) == (200, LINES)


def test_a_range_outside_the_file_is_refused(ann: Customer) -> None:
    """416 as JSON, with the file's length."""
    asked = {"Range": f"bytes={len(LINES)}-"}
    answer = ann.http.get(f"/v1/files/{ann.file()}/content", headers=asked)
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{len(LINES)}"
    assert answer.json()["error"]["code"] == "range_not_satisfiable"


def test_a_resumed_download_never_mixes_two_files(ann: Customer) -> None:
    """If-Range with the file's own tag gets the slice, with another tag the whole."""
    address = f"/v1/files/{ann.file()}/content"
    tag = ann.http.get(address).headers["etag"]
    same = ann.http.get(address, headers={"Range": "bytes=3-", "If-Range": tag})
    other = ann.http.get(address, headers={"Range": "bytes=3-", "If-Range": '"x"'})
    assert (same.status_code, other.status_code) == (206, 200)


def test_a_large_file_comes_back_byte_for_byte(ann: Customer) -> None:
    """Several chunks up and down: what was sent is what comes back."""
    data = b"".join(line(f"é{number}" * 20) for number in range(5_000))
    assert ann.sdk.files.content(ann.file(data)).content == data
