"""Batches as the unmodified SDK sees them."""

import openai
import pytest

from gridline.catalog import cards
from gridline.db.work import unit_of_work
from gridline.files import receiving
from gridline.ledger import holding
from tests.api.conftest import MODEL, Customer, end

KEYS = {
    "id", "object", "endpoint", "model", "errors", "input_file_id", "completion_window", "status",
    "output_file_id", "error_file_id", "created_at", "in_progress_at", "expires_at", "finalizing_at",
    "completed_at", "failed_at", "expired_at", "cancelling_at", "cancelled_at", "request_counts", "usage",
    "metadata", "gridline",
}  # fmt: skip


def test_a_new_batch_has_every_key_and_nulls(ann: Customer) -> None:
    """All keys from the first answer on; what is not due is null, never "" or 0; counts and usage are zeros."""
    file_id = ann.file()
    made = ann.batch(file_id, metadata={"k": "v"})
    assert set(made) == KEYS
    assert made["status"] == "validating"
    assert (made["input_file_id"], made["metadata"]) == (file_id, {"k": "v"})
    assert made["request_counts"] == {"total": 0, "completed": 0, "failed": 0, "cancelled": 0}
    assert made["usage"] == {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }
    due = {"model", "errors", "output_file_id", "error_file_id"} | {
        key for key in KEYS if key.endswith("_at") and key not in ("created_at", "expires_at")
    }
    assert {key: made[key] for key in due} == dict.fromkeys(due)
    assert int(str(made["expires_at"])) - int(str(made["created_at"])) == 86_400
    assert ann.http.get(f"/openai/v1/batches/{made['id']}").json() == made


def test_a_waiting_batch_says_why(ann: Customer) -> None:
    """The extension is always an object: reason, code, since, next step; hold and cost null until due."""
    made = ann.batch()
    extension = made["gridline"]
    assert isinstance(extension, dict)
    assert extension["reason_code"] == "starting"
    assert extension["since"] == made["created_at"]
    assert extension["reason"]
    assert extension["next_step"]
    assert (extension["hold"], extension["cost"], extension["error_code"]) == (None, None, None)


def test_the_sdk_creates_reads_lists_and_cancels(ann: Customer) -> None:
    """The typed client finds its types, 72h through extra_body included."""
    made = ann.sdk.batches.create(
        input_file_id=ann.file(),
        endpoint="/v1/embeddings",
        completion_window="24h",
        extra_body={"completion_window": "72h"},
    )
    assert made.expires_at == made.created_at + 3 * 86_400
    assert made.usage is not None
    assert made.usage.input_tokens_details.cached_tokens == 0
    assert ann.sdk.batches.retrieve(made.id) == made
    assert [one.id for one in ann.sdk.batches.list()] == [made.id]
    cancelled = ann.sdk.batches.cancel(made.id)
    assert cancelled.status == "cancelling"
    assert cancelled.cancelling_at is not None
    assert ann.sdk.batches.cancel(made.id).status == "cancelling"


def test_the_sdk_walks_every_page(ann: Customer) -> None:
    """Five batches in pages of two: each once, newest first, and an empty page past the end."""
    file_id = ann.file()
    made = []
    for _ in range(5):
        made.append(ann.batch(file_id)["id"])
        end(made[-1], "failed")
    assert [one.id for one in ann.sdk.batches.list(limit=2)] == made[::-1]
    page = ann.http.get(f"/v1/batches?after={made[0]}").json()
    assert page == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "limit=1&limit=1"])
def test_a_wrong_page_is_refused_by_name(ann: Customer, query: str) -> None:
    """1 to 100, once; else a 400 that names the parameter."""
    answer = ann.http.get(f"/v1/batches?{query}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "limit")


def test_unknown_foreign_and_odd_ids_are_the_same(ann: Customer, bob: Customer) -> None:
    """Every route answers a stranger exactly as it answers a random id, and changes nothing."""
    batch_id, file_id = str(ann.batch()["id"]), ann.file()
    random = {"batch": "batch_" + "z" * 24, "file": "file-" + "z" * 24}
    routes = [
        ("GET", "/v1/batches/{batch}"),
        ("POST", "/v1/batches/{batch}/cancel"),
        ("GET", "/v1/batches?after={batch}"),
        ("GET", "/gridline/v1/batches/{batch}/receipt"),
        ("GET", "/gridline/v1/batches/{batch}/events"),
        ("GET", "/v1/files/{file}"),
        ("GET", "/v1/files/{file}/content"),
        ("GET", "/v1/files?after={file}"),
        ("DELETE", "/v1/files/{file}"),
    ]
    for method, route in routes:
        answers = []
        for ids in ({"batch": batch_id, "file": file_id}, random, {"batch": "..%2f", "file": "%00"}):
            answer = bob.http.request(method, route.format(**ids))
            text = answer.text
            for one in ids.values():
                text = text.replace(one, "ID")
            answers.append((answer.status_code, text, sorted(answer.headers)))
        assert answers[0][0] == 404, route
        assert answers[0] == answers[1], route
        assert answers[2][0] == 404, route
    assert ann.http.get(f"/v1/batches/{batch_id}").json()["status"] == "validating"
    assert ann.http.get(f"/v1/files/{file_id}").status_code == 200


@pytest.mark.parametrize("kind", ["foreign", "random", "deleted", "odd"])
def test_a_create_from_a_file_that_is_not_there_is_a_404(ann: Customer, bob: Customer, kind: str) -> None:
    """Known at once, said at once: no batch is made and no slot taken."""
    ids = {"foreign": bob.file(), "random": "file-" + "a" * 24, "deleted": ann.file(), "odd": "x"}
    ann.sdk.files.delete(ids["deleted"])
    with pytest.raises(openai.NotFoundError) as caught:
        ann.sdk.batches.create(input_file_id=ids[kind], endpoint="/v1/embeddings", completion_window="24h")
    assert caught.value.param == "input_file_id"
    assert ann.http.get("/v1/batches").json()["data"] == []
    assert ann.http.get("/gridline/v1/account").json()["limits"]["open_batches"]["current"] == 0


def test_a_third_open_batch_is_refused_once(ann: Customer) -> None:
    """429 with limit and use, told not to retry; when one ends there is room again."""
    file_id = ann.file()
    first = ann.batch(file_id)
    ann.batch(file_id)
    with pytest.raises(openai.RateLimitError) as caught:
        ann.sdk.batches.create(
            input_file_id=file_id, endpoint="/v1/chat/completions", completion_window="24h"
        )
    body = caught.value.body
    assert isinstance(body, dict)
    assert body["code"] == "limit_exceeded"
    assert body["limit"] == {"name": "open_batches", "limit": 2, "current": 2}
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert int(caught.value.response.headers["retry-after"]) <= 60
    end(first["id"], "failed")
    ann.batch(file_id)


@pytest.mark.parametrize("status", ["completed", "failed", "expired"])
def test_cancelling_what_has_ended_is_a_conflict(ann: Customer, status: str) -> None:
    """409 with OpenAI's words, told not to retry, state unchanged."""
    batch_id = str(ann.batch()["id"])
    if status == "completed":
        end(batch_id, "in_progress")
        end(batch_id, "finalizing")
    end(batch_id, status)
    with pytest.raises(openai.ConflictError) as caught:
        ann.sdk.batches.cancel(batch_id)
    assert f"Cannot cancel a batch with status '{status}'." in caught.value.message
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert ann.sdk.batches.retrieve(batch_id).status == status


def test_a_key_finds_the_first_batch(ann: Customer) -> None:
    """Idempotency-Key: same body same batch, another body 409, also past the slot limit."""
    file_id = ann.file()
    wanted = {"input_file_id": file_id, "endpoint": "/v1/embeddings", "completion_window": "24h"}
    headers = {"Idempotency-Key": "k" * 128}
    first = ann.http.post("/v1/batches", json=wanted, headers=headers).json()
    ann.batch(file_id)
    assert ann.http.post("/v1/batches", json=wanted, headers=headers).json()["id"] == first["id"]
    other = ann.http.post("/v1/batches", json={**wanted, "metadata": {}}, headers=headers)
    assert (other.status_code, other.headers["x-should-retry"]) == (409, "false")
    for key in ("", "k" * 129):
        answer = ann.http.post("/v1/batches", json=wanted, headers={"Idempotency-Key": key})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "Idempotency-Key")


def test_events_tell_what_happened_in_order(ann: Customer) -> None:
    """The timeline starts with the create, by the token that made it."""
    batch_id = ann.batch()["id"]
    ann.http.post(f"/v1/batches/{batch_id}/cancel")
    page = ann.http.get(f"/gridline/v1/batches/{batch_id}/events").json()
    assert page["object"] == "list"
    assert page["data"][0]["kind"] == "created"
    assert page["data"][0]["actor"].startswith("token:tok_")
    sequences = [one["sequence"] for one in page["data"]]
    assert sequences == sorted(sequences)
    assert len(sequences) >= 2


def test_a_receipt_is_there_once_credit_is_held(ann: Customer) -> None:
    """Before the hold there is none; then it shows the hold in credits, and the account shows it too."""
    batch_id = str(ann.batch()["id"])
    assert ann.http.get(f"/gridline/v1/batches/{batch_id}/receipt").status_code == 404
    with unit_of_work() as work:
        card = cards.catalogue()[MODEL].copy()
        holding.place(work, batch_id=batch_id, account_id=ann.account_id, amount_nanos=10**9 + 1, card=card)
    receipt = ann.http.get(f"/gridline/v1/batches/{batch_id}/receipt").json()
    assert receipt["hold"] == "1.000000001"
    assert ann.http.get(f"/v1/batches/{batch_id}").json()["gridline"]["hold"] == "1.000000001"
    balance = ann.http.get("/gridline/v1/account").json()["balance"]
    assert balance == {"available": "8.999999999", "held": "1.000000001"}


def test_an_output_file_is_no_input(ann: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another purpose is refused at create, naming the parameter."""
    monkeypatch.setattr(receiving, "PURPOSE_INPUT", "batch_output")
    data = {"purpose": "batch_output"}
    file_id = ann.http.post("/v1/files", data=data, files={"file": ("r.jsonl", b"{}\n")}).json()["id"]
    wanted = {"input_file_id": file_id, "endpoint": "/v1/embeddings", "completion_window": "24h"}
    answer = ann.http.post("/v1/batches", json=wanted)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input_file_id")
