"""Creates whose answer was lost, as the unmodified SDK sends them again, and creates with a key."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import openai
import pytest

from gridline.customers import tokens
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from tests.api.conftest import Customer, end
from tests.api.lossy_proxy import LossyProxy, lossy_proxy
from tests.racing import together

AGAIN = {"X-Stainless-Retry-Count": "1"}


@pytest.fixture
def proxy(address: str) -> Iterator[LossyProxy]:
    """A proxy before the API that loses nothing yet."""
    with lossy_proxy(address) as one:
        yield one


@pytest.fixture
def sdk(proxy: LossyProxy, ann: Customer) -> Iterator[openai.OpenAI]:
    """Ann's SDK with its default retries, through the proxy."""
    with (
        httpx2.Client(timeout=20, verify=False) as plain,
        openai.OpenAI(base_url=f"{proxy.url}/openai/v1", api_key=ann.token, http_client=plain) as one,
    ):
        assert one.max_retries == 2
        yield one


def wanted(customer: Customer, **more: object) -> dict[str, Any]:
    """A create of a file of its own."""
    return {
        "input_file_id": customer.file(),
        "endpoint": "/v1/embeddings",
        "completion_window": "24h",
        **more,
    }


def create(customer: Customer, body: dict[str, Any] | bytes, **headers: str) -> httpx.Response:
    """One call; ``a_b=`` is the header ``a-b``."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return customer.http.post(
        "/v1/batches", content=data, headers={"Content-Type": "application/json", **named}
    )


def batches(customer: Customer) -> list[str]:
    """The ids of all of the customer's batches."""
    return [one.id for one in customer.sdk.batches.list()]


def open_batches(customer: Customer, most: int) -> None:
    """Set how many open batches the customer may have."""
    with unit_of_work() as work:
        work.session.get_one(Account, customer.account_id).open_batches_max = most


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "k1"}])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_answer_makes_no_second_batch(
    ann: Customer, sdk: openai.OpenAI, proxy: LossyProxy, key: dict[str, str], lost: int
) -> None:
    """The SDK tries again by itself, with a key or without, and gets the batch that its first attempt made."""
    body = wanted(ann)
    proxy.answers_to_lose = lost
    answer = sdk.batches.with_raw_response.create(**body, extra_headers=key)
    assert [answer.parse().id] == batches(ann)
    assert answer.headers["idempotency-replayed"] == "true"
    assert proxy.retry_counts == [str(number) for number in range(lost + 1)]


def test_the_last_slots_batch_answers_its_retry(ann: Customer, sdk: openai.OpenAI, proxy: LossyProxy) -> None:
    """The first attempt took the last open slot: its retry is no 429."""
    open_batches(ann, 1)
    body = wanted(ann)
    proxy.answers_to_lose = 1
    assert [sdk.batches.create(**body).id] == batches(ann)
    assert create(ann, body, **{"User-Agent": "curl/8"}).status_code == 429


def test_a_request_that_never_arrived_is_made_by_its_retry(
    ann: Customer, sdk: openai.OpenAI, proxy: LossyProxy
) -> None:
    """The retry of a create that nobody saw makes the batch."""
    proxy.requests_to_lose = 1
    answer = sdk.batches.with_raw_response.create(**wanted(ann))
    assert [answer.parse().id] == batches(ann)
    assert "idempotency-replayed" not in answer.headers
    assert proxy.retry_counts == ["0", "1"]


def test_asking_twice_is_two_batches(ann: Customer, sdk: openai.OpenAI) -> None:
    """Two calls of the SDK with one body are two batches, and neither is marked as a replay."""
    body = wanted(ann)
    answers = [sdk.batches.with_raw_response.create(**body) for _ in range(2)]
    assert sorted(answer.parse().id for answer in answers) == sorted(batches(ann))
    assert len(batches(ann)) == 2
    assert not any("idempotency-replayed" in answer.headers for answer in answers)


@pytest.mark.parametrize("count", ["0", "", "x", "-1", "1.5", "1e3", "1 1", "\u0661"])
def test_what_is_no_retry_count_makes_a_batch(ann: Customer, count: str) -> None:
    """Only a whole number above zero marks a retry."""
    body = wanted(ann)
    first = create(ann, body)
    raw = httpx.Headers(
        [(b"X-Stainless-Retry-Count", count.encode()), (b"Content-Type", b"application/json")]
    )
    second = ann.http.post("/v1/batches", content=json.dumps(body), headers=raw)
    assert second.status_code == 200
    assert second.json()["id"] != first.json()["id"]


def test_a_retry_is_of_the_same_program_token_and_body(ann: Customer) -> None:
    """Another User-Agent, another token or another body with a retry count is a create of its own."""
    open_batches(ann, 10)
    body = wanted(ann)
    first = create(ann, body).json()["id"]
    assert create(ann, body, **AGAIN).json()["id"] == first
    with unit_of_work() as work:
        _, token = tokens.issue(work, ann.account_id, "second")
    others = [
        create(ann, body, **AGAIN, User_Agent="curl/8"),
        create(ann, body, **AGAIN, Authorization=f"Bearer {token}"),
        create(ann, {**body, "metadata": {"a": "b"}}, **AGAIN),
    ]
    assert len({first, *(one.json()["id"] for one in others)}) == 4


def test_a_replay_is_marked_and_shows_the_batch_as_it_is(ann: Customer) -> None:
    """The header is on replays only; the body is the first batch, at the stage it has reached."""
    body = wanted(ann)
    first = create(ann, body, Idempotency_Key="k")
    assert "idempotency-replayed" not in first.headers
    again = create(ann, body, Idempotency_Key="k")
    assert (again.headers["idempotency-replayed"], again.json()) == ("true", first.json())
    end(first.json()["id"], "failed")
    ann.sdk.files.delete(body["input_file_id"])
    late = create(ann, body, Idempotency_Key="k")
    assert (late.json()["id"], late.json()["status"]) == (first.json()["id"], "failed")


def test_the_body_is_what_it_says_not_how_it_is_written(ann: Customer) -> None:
    """Order of keys, blanks and escapes make no other body; null is absent."""
    body = wanted(ann, metadata={"a": "1", "b": "é"})
    turned = dict(reversed(body.items())) | {"metadata": {"b": "é", "a": "1"}, "output_expires_after": None}
    first = create(ann, body, Idempotency_Key="k")
    again = create(ann, json.dumps(turned, indent=2, ensure_ascii=False).encode(), Idempotency_Key="k")
    assert again.json()["id"] == first.json()["id"]
    other = create(ann, {**body, "metadata": {"a": "2"}}, Idempotency_Key="k")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
    assert other.headers["x-should-retry"] == "false"


def test_the_sdk_does_not_repeat_a_conflict(ann: Customer, sdk: openai.OpenAI, proxy: LossyProxy) -> None:
    """A used key reaches the customer at the first attempt, as OpenAI's conflict error."""
    sdk.batches.create(**wanted(ann), extra_headers={"Idempotency-Key": "k"})
    with pytest.raises(openai.ConflictError) as caught:
        sdk.batches.create(**wanted(ann), extra_headers={"Idempotency-Key": "k"})
    assert (caught.value.code, caught.value.param) == ("idempotency_conflict", "Idempotency-Key")
    assert proxy.retry_counts == ["0", "0"]


def test_a_key_outlives_its_token(ann: Customer) -> None:
    """After the token was changed for another the key still finds the batch."""
    body = wanted(ann)
    first = create(ann, body, Idempotency_Key="k")
    with unit_of_work() as work:
        _, token = tokens.issue(work, ann.account_id, "new")
    again = create(ann, body, Idempotency_Key="k", Authorization=f"Bearer {token}")
    assert again.json()["id"] == first.json()["id"]


@pytest.mark.parametrize("length", [1, 128])
def test_keys_have_1_to_128_characters(ann: Customer, length: int) -> None:
    """Both ends are taken, one more or one less is refused by name."""
    body = wanted(ann)
    assert create(ann, body, Idempotency_Key="k" * length).status_code == 200
    outside = create(ann, body, Idempotency_Key="k" * (length - 1 if length == 1 else length + 1))
    assert (outside.status_code, outside.json()["error"]["param"]) == (400, "Idempotency-Key")
    assert len(batches(ann)) == 1


def test_twenty_at_once_with_one_key_get_one_batch(ann: Customer) -> None:
    """Whoever comes second waits for the first and gets the same batch; one of them made it."""
    body = wanted(ann)
    answers = together(20, lambda: create(ann, body, Idempotency_Key="k"))
    got = [one for one in answers if isinstance(one, httpx.Response)]
    assert [one.status_code for one in got] == [200] * 20
    assert {one.json()["id"] for one in got} == set(batches(ann))
    assert len(batches(ann)) == 1
    assert ["idempotency-replayed" in one.headers for one in got].count(False) == 1


def test_of_many_bodies_under_one_key_one_wins(ann: Customer) -> None:
    """Twenty bodies at once under one key: one batch, and nineteen conflicts that say not to try again."""
    body, numbers = wanted(ann), iter(range(20))
    answers = together(
        20, lambda: create(ann, {**body, "metadata": {"n": str(next(numbers))}}, Idempotency_Key="k")
    )
    got = [one for one in answers if isinstance(one, httpx.Response)]
    assert sorted(one.status_code for one in got) == [200] + [409] * 19
    assert {one.headers.get("x-should-retry") for one in got if one.status_code == 409} == {"false"}
    assert len(batches(ann)) == 1
