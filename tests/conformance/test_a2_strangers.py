"""What one account can do with the ids of another: nothing, and without learning that they exist."""

from typing import Any

import httpx
import pytest

from tests.conformance.batch_service import EMBEDDINGS_ENDPOINT, Service, refused

OWN_HEADERS = {"date", "x-request-id", "openai-processing-ms"}
"""What differs from one answer to the next, whatever was asked."""
OWN_PREFIXES = ("x-ratelimit-",)


@pytest.fixture(scope="module")
def mine(service: Service) -> dict[str, str]:
    """Ids of what an account has: an input, an open upload, a completed batch and its output."""
    ended = service.run([service.embedding_line("a", "x")], EMBEDDINGS_ENDPOINT)
    asked = {"filename": "u.jsonl", "purpose": "batch", "bytes": 10, "mime_type": "application/jsonl"}
    upload = service.http.post("/uploads", json=asked)
    assert upload.status_code == 200, upload.text
    return {
        "file": ended.batch["input_file_id"],
        "output": ended.batch["output_file_id"],
        "batch": ended.batch["id"],
        "upload": upload.json()["id"],
    }


def calls(one: Service, ids: dict[str, str]) -> dict[str, httpx.Response]:
    """Every call that takes an id, with these ids."""
    get, post, delete = one.http.get, one.http.post, one.http.delete
    made: dict[str, httpx.Response] = {}
    for kind in ("file", "output"):
        path = f"/files/{ids[kind]}"
        made |= {
            f"{kind} show": get(path),
            f"{kind} delete": delete(path),
            f"{kind} content": get(f"{path}/content"),
        }
    part = {"data": ("part", b"0123456789")}
    return made | {
        "batch show": get(f"/batches/{ids['batch']}"),
        "batch cancel": post(f"/batches/{ids['batch']}/cancel"),
        "create": one.create(ids["file"], EMBEDDINGS_ENDPOINT),
        "create of output": one.create(ids["output"], EMBEDDINGS_ENDPOINT),
        "files after": get("/files", params={"after": ids["file"]}),
        "batches after": get("/batches", params={"after": ids["batch"]}),
        "upload part": post(f"/uploads/{ids['upload']}/parts", files=part),
        "upload complete": post(f"/uploads/{ids['upload']}/complete", json={"part_ids": []}),
        "upload cancel": post(f"/uploads/{ids['upload']}/cancel"),
    }


def nobody(ids: dict[str, str]) -> dict[str, str]:
    """Ids of the same shape that nobody has."""
    return {kind: id_[:-20] + "0" * 20 for kind, id_ in ids.items()}


def test_case_30_anothers_objects_do_not_exist(
    service: Service, other: Service, mine: dict[str, str]
) -> None:
    """With another account's ids every call is a 404, no list holds them, and their owner's objects are unchanged."""
    before = {
        "batch": service.batch(mine["batch"]),
        **{kind: service.http.get(f"/files/{mine[kind]}").json() for kind in ("file", "output")},
    }
    for answer in calls(other, mine).values():
        refused(answer, 404, code="not_found")
    for path in ("/files", "/batches"):
        assert not {one["id"] for one in other.http.get(path).json()["data"]} & set(mine.values())
    assert service.batch(mine["batch"]) == before["batch"]
    for kind in ("file", "output"):
        assert service.http.get(f"/files/{mine[kind]}").json() == before[kind]
    assert service.http.post(f"/uploads/{mine['upload']}/cancel").json()["status"] == "cancelled"


def shown(answer: httpx.Response, ids: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
    """All of an answer but the ids that were asked for and what differs every time."""
    body = answer.text
    for kind, id_ in ids.items():
        body = body.replace(id_, kind)
    headers = {name: value for name, value in answer.headers.items() if name not in OWN_HEADERS}
    return answer.status_code, body, {k: v for k, v in headers.items() if not k.startswith(OWN_PREFIXES)}


def test_case_31_foreign_and_missing_are_the_same(
    service: Service, other: Service, mine: dict[str, str]
) -> None:
    """An id of another account and one that nobody has get the same status, headers and body, byte for byte."""
    missing = nobody(mine)
    foreign_answers, missing_answers = calls(other, mine), calls(other, missing)
    for name, answer in foreign_answers.items():
        assert shown(answer, mine) == shown(missing_answers[name], missing), name
