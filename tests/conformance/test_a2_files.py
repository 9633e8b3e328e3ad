"""The Files API: pages, limits, result files, deletion, and downloads of the largest file there may be."""

import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.batch_service import EMBEDDINGS_ENDPOINT, ENDED, Service, refused

LINE_BYTES = 1_000_000
TOO_LONG = "word " * 6_000
"""More tokens than any embedding model here takes."""


def ids(page: dict[str, Any]) -> list[str]:
    """The ids on a page."""
    return [one["id"] for one in page["data"]]


def page(service: Service, **query: Any) -> dict[str, Any]:
    """A page of files, in the shape of every list."""
    found: dict[str, Any] = service.http.get("/files", params=query).raise_for_status().json()
    assert found["object"] == "list"
    ends = (found["data"][0]["id"], found["data"][-1]["id"]) if found["data"] else (None, None)
    assert (found["first_id"], found["last_id"]) == ends
    return found


def one_good_one_bad(service: Service) -> dict[str, Any]:
    """A completed batch with a line in each of its files."""
    lines = [service.embedding_line("good", "x"), service.embedding_line("bad", TOO_LONG)]
    ended = service.run(lines, EMBEDDINGS_ENDPOINT)
    assert ended.batch["status"] == "completed"
    assert ([one["custom_id"] for one in ended.out], [one["custom_id"] for one in ended.err]) == (
        ["good"],
        ["bad"],
    )
    return ended.batch


def test_case_23_every_file_is_listed_once(service: Service) -> None:
    """Twenty-five files come in pages of ten, ten and five, in both orders, each once, with an exact has_more."""
    data = [service.chat_line("a")]
    mark, *mine = (service.file(data) for _ in range(26))
    found: list[str] = []
    more: list[bool] = []
    after = mark
    for _ in range(3):
        one = page(service, order="asc", limit=10, after=after)
        found, more, after = found + ids(one), [*more, one["has_more"]], one["last_id"]
    assert (found, more) == (mine, [True, True, False])
    assert ids(page(service, limit=25)) == mine[::-1]
    assert ids(page(service, order="desc", limit=5, after=mine[5])) == mine[:5][::-1]
    assert all(one["purpose"] == "batch_output" for one in page(service, purpose="batch_output")["data"])
    assert set(mine) <= set(ids(page(service, purpose="batch")))


def test_case_23_an_empty_list_is_a_list(service: Service) -> None:
    """Where there is nothing the list is empty, with has_more false and no first or last id."""
    empty = page(service, purpose="fine-tune")
    assert (empty["data"], empty["has_more"]) == ([], False)


BAD_LIMITS: tuple[Any, ...] = ("0", "-1", "abc", "1.5", "", ["1", "2"])


@pytest.mark.parametrize(("path", "most"), [("/files", 10_000), ("/batches", 100)])
def test_case_24_pages_have_limits(service: Service, path: str, most: int) -> None:
    """A page has 1 to 10,000 files or 1 to 100 batches; any other limit, cursor or order is refused by its name."""
    for limit in (*BAD_LIMITS, str(most + 1)):
        refused(service.http.get(path, params={"limit": limit}), 400, param="limit")
    for good in ("1", str(most)):
        assert len(service.http.get(path, params={"limit": good}).json()["data"]) <= int(good)
    default = service.http.get(path).json()["data"]
    assert len(default) <= (most if path == "/files" else 20)
    for cursor in ("does-not-exist", "file-" + "0" * 24, ""):
        refused(service.http.get(path, params={"after": cursor}), 404, param="after")
    if path == "/files":
        refused(service.http.get(path, params={"order": "up"}), 400, param="order")
        refused(service.http.get(path, params={"purpose": "nonsense"}), 400, param="purpose")


def test_case_25_result_files_are_listed(service: Service) -> None:
    """The output and the error file of a batch are among the files, with purpose, size and dates, and by id."""
    batch = one_good_one_bad(service)
    shown = {one["id"]: one for one in page(service, purpose="batch_output")["data"]}
    source = service.http.get(f"/files/{batch['input_file_id']}").json()
    for file_id in (batch["output_file_id"], batch["error_file_id"]):
        file = shown[file_id]
        assert file == service.http.get(f"/files/{file_id}").json()
        assert (file["object"], file["purpose"], file["status"]) == ("file", "batch_output", "processed")
        assert file["bytes"] == len(service.content(file_id))
        assert batch["created_at"] <= file["created_at"] <= batch["completed_at"] + 5
        kept = file["created_at"] + 30 * 24 * 3600
        assert file["expires_at"] == (min(kept, source["expires_at"]) if service.dialect.capped else kept)


def test_case_26_a_result_file_is_deleted_once(service: Service) -> None:
    """Deleting an output file says so, then it is gone from everywhere, and its batch can still be looked at."""
    batch = one_good_one_bad(service)
    output = batch["output_file_id"]
    deleted = service.http.delete(f"/files/{output}")
    assert deleted.status_code == 200
    assert deleted.json() == {"id": output, "object": "file", "deleted": True}
    refused(service.http.delete(f"/files/{output}"), 404, code="not_found")
    refused(service.http.get(f"/files/{output}"), 404, code="not_found")
    refused(service.http.get(f"/files/{output}/content"), 404, code="not_found")
    assert output not in ids(page(service))
    assert service.batch(batch["id"])["status"] == "completed"
    assert service.content(batch["error_file_id"])


def test_case_27_a_file_in_use_stays(service: Service) -> None:
    """While a batch reads a file, or two do, deleting it is a 409 at every moment; after their end it works."""
    lines = [service.embedding_line(f"n{number}", "x") for number in range(20)]
    first = service.created(lines, EMBEDDINGS_ENDPOINT)
    file_id = first["input_file_id"]
    second = service.create(file_id, EMBEDDINGS_ENDPOINT).json()
    statuses = set()
    while not all((one := service.batch(batch["id"]))["status"] in ENDED for batch in (first, second)):
        answer = service.http.delete(f"/files/{file_id}")
        if answer.status_code == 200:  # both ended since they were looked at
            break
        refused(answer, 409, code="file_in_use", param="file_id")
        assert answer.headers["x-should-retry"] == "false"
        statuses.add(one["status"])
        time.sleep(0.1)
    assert statuses
    for batch in (first, second):
        assert service.ended(service.finished(batch["id"]), lines).batch["status"] == "completed"
    assert service.http.delete(f"/files/{file_id}").status_code in {200, 404}


def test_case_28_a_file_id_is_shown_once_its_file_is_whole(service: Service) -> None:
    """File ids are null until the files are whole; one that is shown can be downloaded at once and never changes."""
    lines = [service.embedding_line(f"n{number}", "x") for number in range(50)]
    lines.append(service.embedding_line("bad", TOO_LONG))
    batch = service.created(lines, EMBEDDINGS_ENDPOINT)
    seen: dict[str, set[str]] = {"output_file_id": set(), "error_file_id": set()}
    sizes = set()
    for one in service.polls(batch["id"], every=0.1):
        for name, known in seen.items():
            if one[name] is not None:
                known.add(one[name])
                sizes.add((name, len(service.content(one[name]))))
    assert [len(known) for known in seen.values()] == [1, 1]
    assert len(sizes) == 2


def whole_file(line: bytes, file_bytes: int) -> Iterator[bytes]:
    """The largest file there may be, a megabyte at a time: one request a line, padded with spaces."""
    for _ in range(file_bytes // LINE_BYTES):
        yield line + b" " * (LINE_BYTES - len(line) - 1) + b"\n"


@pytest.fixture(scope="module")
def largest(service: Service) -> Iterator[tuple[str, str]]:
    """The id of a file of exactly as many bytes as it may have, and its hash."""
    line = json.dumps(service.chat_line("a")).encode()
    data = b"".join(whole_file(line, service.dialect.file_bytes_max))
    answer = service.upload(data)
    assert answer.status_code == 200, answer.text
    assert answer.json()["bytes"] == service.dialect.file_bytes_max
    yield answer.json()["id"], hashlib.sha256(data).hexdigest()
    service.http.delete(f"/files/{answer.json()['id']}")


def test_case_21_the_limit_on_bytes_is_inclusive(largest: tuple[str, str]) -> None:
    """A file of exactly the most bytes is taken; that one byte more is a 413 is seen with each SDK."""
    assert largest[0].startswith("file-")


def test_case_29_a_large_file_is_downloaded_whole(service: Service, largest: tuple[str, str]) -> None:
    """A download of the largest file has its length and every byte, also for a client that reads slowly at first."""
    file_id, wanted = largest
    most = service.dialect.file_bytes_max
    found, size = hashlib.sha256(), 0
    with service.http.stream("GET", f"/files/{file_id}/content") as answer:
        assert (answer.status_code, answer.headers["content-length"]) == (200, str(most))
        for piece in answer.iter_bytes(LINE_BYTES):
            found.update(piece)
            size += len(piece)
            if size <= 20 * LINE_BYTES:
                time.sleep(0.2)  # five megabytes a second
    assert (size, found.hexdigest()) == (most, wanted)


def test_case_29_a_range_is_never_a_wrong_slice(service: Service, largest: tuple[str, str]) -> None:
    """A range is answered with its very bytes and says where they are from; one outside the file is a 416."""
    url = f"/files/{largest[0]}/content"
    most = service.dialect.file_bytes_max
    last = service.http.get(url, headers={"Range": f"bytes={most - 10}-"})
    assert (last.status_code, last.content) == (206, b" " * 9 + b"\n")
    assert last.headers["content-range"] == f"bytes {most - 10}-{most - 1}/{most}"
    middle = service.http.get(url, headers={"Range": f"bytes={LINE_BYTES - 1}-{LINE_BYTES + 12}"})
    assert (middle.status_code, middle.content) == (206, b'\n{"custom_id":')
    with service.http.stream("GET", url, headers={"Range": "bytes=1000-"}) as rest:
        assert (rest.status_code, rest.headers["content-length"]) == (206, str(most - 1000))
    refused(service.http.get(url, headers={"Range": f"bytes={most}-"}), 416)
