"""Both official SDKs, the newest and an old one, as they are: each walks the same way and has to see the same."""

from typing import Any

import pytest

from tests.conformance.batch_service import Service
from tests.conformance.walks import Client, complete, scene

BATCH_TIMES = ("finalizing_at", "completed_at", "failed_at", "expired_at", "cancelling_at", "cancelled_at")


def told(refusal: dict[str, Any], class_: str, status: int, *, code: str, param: str | None) -> None:
    """A refusal came as this error, said what is wrong and where, and was asked for once."""
    assert "class" in refusal, refusal
    assert (refusal["class"], refusal["status"]) == (class_, status), refusal
    assert (refusal["code"], refusal["param"]) == (code, param), refusal
    assert refusal["request_id"].startswith("req")
    assert refusal["message"]
    assert len(refusal["attempts"]) == 1, refusal["attempts"]


def test_files_are_uploaded_from_a_path_from_memory_and_as_a_stream(walk: dict[str, Any]) -> None:
    """A file is uploaded from a path, from memory and as a stream of unknown length, and read back byte for byte."""
    files = scene(walk, "files")
    assert files["content"] == {"path": True, "bytes": True, "stream": True}
    assert any(files["chunked"])
    sizes = set()
    for one in files["uploaded"].values():
        complete(one)
        assert (one["object"], one["purpose"], one["status"]) == ("file", "batch", "processed")
        assert one["status_details"] is None
        assert one["created_at"] < one["expires_at"]
        sizes.add(one["bytes"])
    assert len(sizes) == 1
    assert files["retrieved"] == files["uploaded"]["bytes"]


def test_files_are_listed_page_by_page(walk: dict[str, Any]) -> None:
    """Iterating the files in pages of two meets every file once, and ends."""
    files = scene(walk, "files")
    ids = files["listed"]["ids"]
    assert {one["id"] for one in files["uploaded"].values()} <= set(ids)
    assert len(set(ids)) == len(ids)
    assert files["listed"]["pages"] >= len(ids) / 2


def test_a_part_of_a_file_is_downloaded(walk: dict[str, Any]) -> None:
    """A download with a Range gets these bytes and no others."""
    assert scene(walk, "files")["range"] == {"status": 206, "is_the_part": True}


def test_an_upload_is_processed_at_once(walk: dict[str, Any]) -> None:
    """Waiting for a file to be processed ends with the first look."""
    waited = scene(walk, "files")["waited"]
    assert waited["status"] == "processed"
    assert waited["seconds"] < 5


def test_a_file_is_deleted_once(client: Client, walk: dict[str, Any]) -> None:
    """Deleting a file says so; the second time it is a NotFoundError."""
    files = scene(walk, "files")
    wanted = {"id": files["uploaded"]["stream"]["id"], "object": "file", "deleted": True}
    assert files["deleted"] == wanted
    told(files["deleted_again"], "NotFoundError", 404, code="not_found", param="file_id")


def test_a_file_is_uploaded_in_parts(walk: dict[str, Any]) -> None:
    """A file that is uploaded in several parts becomes one file with the bytes of all."""
    uploads = scene(walk, "uploads")
    upload = complete(uploads["upload"])
    assert (upload["object"], upload["status"], upload["filename"]) == ("upload", "completed", "parts.jsonl")
    assert (upload["file.purpose"], upload["file.status"]) == ("batch", "processed")
    assert upload["file.bytes"] == upload["bytes"]
    assert uploads["parts"] >= 2
    assert uploads["content"]


def test_models_are_listed_and_looked_up(client: Client, walk: dict[str, Any], service: Service) -> None:
    """Models are listed and retrieved by id; an unknown one, also with a slash in its id, is a NotFoundError."""
    models = scene(walk, "models")
    assert {service.chat, service.embedding} <= set(models["ids"])
    assert complete(models["one"])["id"] == service.chat
    assert isinstance(models["one"]["created"], int)
    told(models["missing"], "NotFoundError", 404, code="model_not_found", param="model")


def test_a_new_batch_has_every_field(walk: dict[str, Any]) -> None:
    """A batch just created carries all of OpenAI's fields, typed, null or zero where nothing is known yet."""
    batch = complete(scene(walk, "batches")["created"])
    assert (batch["object"], batch["status"]) == ("batch", "validating")
    assert batch["endpoint"] == "/v1/chat/completions"
    assert batch["metadata"] == {"walk": "chat.jsonl"}
    assert batch["expires_at"] == batch["created_at"] + 24 * 3600
    assert all(batch[name] is None for name in BATCH_TIMES)
    assert [batch[name] for name in ("errors", "output_file_id", "error_file_id")] == [None, None, None]
    assert batch["usage.total_tokens"] == 0


def test_a_chat_batch_completes(walk: dict[str, Any], service: Service) -> None:
    """A batch of chat requests completes, and its answers are read from its output file."""
    chat = scene(walk, "batches")["chat"]
    batch = complete(chat["batch"])
    assert (batch["status"], batch["model"], batch["error_file_id"]) == ("completed", service.chat, None)
    counts = [batch[f"request_counts.{name}"] for name in ("total", "completed", "failed")]
    assert counts == [2, 2, 0]
    assert [line["custom_id"] for line in chat["lines"]] == ["one", "two"]
    bodies = [line["response"]["body"] for line in chat["lines"]]
    assert all(body["object"] == "chat.completion" for body in bodies)
    assert all(isinstance(body["choices"][0]["message"]["content"], str) for body in bodies)
    assert batch["usage.output_tokens"] == sum(body["usage"]["completion_tokens"] for body in bodies) > 0


def test_an_embeddings_batch_completes(walk: dict[str, Any], service: Service) -> None:
    """A batch of embeddings completes, with one vector for each text of each line."""
    embeddings = scene(walk, "batches")["embeddings"]
    batch = complete(embeddings["batch"])
    assert (batch["status"], batch["model"]) == ("completed", service.embedding)
    vectors = [line["response"]["body"]["data"] for line in embeddings["lines"]]
    assert [len(one) for one in vectors] == [1, 2]
    assert all(isinstance(number, int | float) for number in vectors[0][0]["embedding"])
    assert batch["usage.output_tokens"] == 0


def test_a_batch_is_cancelled(client: Client, walk: dict[str, Any]) -> None:
    """Cancelling answers at once and the batch ends cancelled; cancelling one that completed is a ConflictError."""
    batches = scene(walk, "batches")
    assert complete(batches["cancelling"])["status"] in {"cancelling", "cancelled"}
    assert complete(batches["cancelled"])["status"] == "cancelled"
    assert batches["cancelled"]["cancelled_at"] >= batches["cancelled"]["cancelling_at"]
    told(batches["cancel_ended"], "ConflictError", 409, code="conflict", param=None)


def test_a_bad_line_is_read_from_the_batch(walk: dict[str, Any]) -> None:
    """A batch that failed tells code, message, parameter and line of what is wrong in typed fields."""
    bad = complete(scene(walk, "batches")["bad"])
    assert (bad["status"], bad["errors.object"], bad["errors.data.0.line"]) == ("failed", "list", 2)
    assert (bad["errors.data.0.code"], bad["errors.data.0.param"]) == ("missing_required_parameter", "body")
    assert "body" in bad["errors.data.0.message"]


def test_batches_are_listed_page_by_page(walk: dict[str, Any]) -> None:
    """Iterating the batches in pages of two meets every batch once, the newest first, and ends."""
    listed = scene(walk, "batches")["listed"]
    assert len(set(listed["ids"])) == len(listed["ids"])
    made = set(listed["made"])
    assert [one for one in listed["ids"] if one in made] == listed["made"][::-1]


REFUSALS = {
    "missing_file": ("NotFoundError", 404, "not_found", "file_id"),
    "missing_batch": ("NotFoundError", 404, "not_found", "batch_id"),
    "missing_input": ("NotFoundError", 404, "not_found", "input_file_id"),
    "bad_endpoint": ("BadRequestError", 400, "invalid_value", "endpoint"),
    "bad_extension": ("BadRequestError", 400, "invalid_file_format", "file"),
    "bad_key": ("AuthenticationError", 401, "invalid_api_key", None),
    "key_reused": ("ConflictError", 409, "idempotency_conflict", "Idempotency-Key"),
    "too_large": (None, 413, "file_too_large", "file"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_are_typed_errors(client: Client, walk: dict[str, Any], name: str) -> None:
    """Each refusal raises the SDK's own class for it, with code, parameter and request id, after one attempt."""
    class_, status, code, param = REFUSALS[name]
    refusal = scene(walk, "refusals")[name]
    told(refusal, class_ or client.refused_class, status, code=code, param=param)


def test_a_file_in_use_is_a_conflict(walk: dict[str, Any]) -> None:
    """Deleting the input of a batch that has not ended is a ConflictError after one attempt, and the batch goes on."""
    batches = scene(walk, "batches")
    told(batches["in_use"], "ConflictError", 409, code="file_in_use", param="file_id")
    assert batches["chat"]["batch"]["status"] == "completed"


def test_one_batch_too_many_is_a_rate_limit_error(walk: dict[str, Any]) -> None:
    """The create past the open batches is a RateLimitError after one attempt, with the limit and its use beside."""
    crowd = scene(walk, "crowd")
    if "skipped" in crowd:
        pytest.skip("needs an account with few open batches, which only an operator can make")
    assert crowd["made"] == 2
    told(crowd["refusal"], "RateLimitError", 429, code="limit_exceeded", param=None)
    assert (crowd["refusal"]["limit"]["limit"], crowd["refusal"]["limit"]["current"]) == (2, 2)
