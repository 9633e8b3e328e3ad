"""The second dialect on a stack of its own: the unmodified SDK runs a batch of each of its four endpoints on the real engine."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from anthropic.types import Message
from openai import OpenAI
from openai.types.responses import Response

from gridline.catalog.cards import catalogue
from gridline.money import credits_nanos
from gridline.usage.charging import charge_nanos
from tests.stack import CHAT, EMBEDDING, Customer, Stack, eventually, running_stack

pytestmark = [pytest.mark.stack, pytest.mark.trial, pytest.mark.timeout(900)]

PARIS = "What is the capital of France?"
LINES: dict[str, list[dict[str, Any]]] = {
    "/v1/chat/completions": [
        {"model": CHAT, "messages": [{"role": "user", "content": PARIS}], "max_tokens": 16}
    ],
    "/v1/embeddings": [{"model": EMBEDDING, "input": "Rolls"}],
    "/v1/responses": [
        {"model": CHAT, "input": PARIS, "max_output_tokens": 16},
        {"model": CHAT, "input": PARIS, "store": True},
    ],
    "/v1/messages": [{"model": CHAT, "messages": [{"role": "user", "content": PARIS}], "max_tokens": 16}],
}


@pytest.fixture(scope="module")
def gridport() -> Iterator[Stack]:
    """A stack that speaks the second dialect."""
    with running_stack(added={"GRIDLINE_PROFILE": "gridport"}) as found:
        yield found


@pytest.fixture(scope="module")
def customer(gridport: Stack) -> Iterator[Customer]:
    """A customer whose SDK has the dialect's base URL."""
    made = gridport.customer("dialect")
    with OpenAI(base_url=f"{made.url}/v1", api_key=made.token, timeout=60, max_retries=0) as sdk:
        made.openai = sdk
        yield made


def run(customer: Customer, endpoint: str) -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]]]:
    """A batch of the endpoint's lines once it has ended, with its output and error lines."""
    bodies = LINES[endpoint]
    lines = [
        {"custom_id": f"line-{number}", "method": "POST", "url": endpoint, "body": body}
        for number, body in enumerate(bodies)
    ]
    ended = customer.finished(customer.create(lines, endpoint=endpoint).id)
    files = [ended.output_file_id, ended.error_file_id]
    out, err = (customer.lines(one) if one else [] for one in files)
    return ended, out, err


@pytest.mark.parametrize("endpoint", LINES)
def test_each_endpoint_is_answered_at_half_price(gridport: Stack, customer: Customer, endpoint: str) -> None:
    """The batch completes; what it cost stands in the dialect's extension, and is half the rate of the tokens in the file."""
    ended, out, err = run(customer, endpoint)
    assert ended.status == "completed", ended
    shown = ended.model_extra["tf"]
    assert shown["pricing_tier"] == "batch"
    assert "gridline" not in ended.model_extra
    assert ended.request_counts.model_extra == {"cancelled": 0}
    (line,) = out
    body = line["response"]["body"]
    if endpoint == "/v1/responses":
        assert "Paris" in Response.model_validate(body).output_text
        (refused,) = err
        assert refused["response"]["body"]["error"]["code"] == "permission_denied"
    elif endpoint == "/v1/messages":
        assert "Paris" in Message.model_validate_json(json.dumps(body)).content[0].text  # type: ignore[union-attr]
    usage = body["usage"]
    given = usage.get("prompt_tokens", usage.get("input_tokens"))
    written = usage.get("completion_tokens", usage.get("output_tokens", 0))
    standard = charge_nanos(catalogue()[LINES[endpoint][0]["model"]].copy(), given, written)
    receipt = customer.get(f"/batches/{ended.id}/receipt")
    assert (receipt["input_tokens"], receipt["output_tokens"]) == (given, written)
    assert credits_nanos(shown["cost"]) == credits_nanos(receipt["charged"]) == standard // 2 > 0
    assert "The files of" in gridport.gridline("books", "--files")


def test_the_log_and_the_budget_follow(customer: Customer) -> None:
    """Each line of a batch is in the request log, with source, outcome and cost; the costs add up to the charge."""
    ended, _, _ = run(customer, "/v1/responses")
    headers = {"Authorization": f"Bearer {customer.token}"}

    def logged() -> list[dict[str, Any]]:
        answer = httpx.get(
            f"{customer.url}/gridline/v1/requests", params={"batch_id": ended.id}, headers=headers, timeout=30
        )
        found: list[dict[str, Any]] = answer.json()["data"]
        return found

    rows = eventually(logged, seconds=30, what="the batch is in the log")
    assert [(one["source"], one["code"]) for one in rows] == [("batch", None), ("batch", "permission_denied")]
    assert sum(credits_nanos(one["cost"]) for one in rows) == credits_nanos(ended.model_extra["tf"]["cost"])


def test_other_windows_are_refused(customer: Customer) -> None:
    """The dialect knows 24h only; the refusal names what is taken."""
    with pytest.raises(Exception, match="24h") as refused:
        customer.create(
            [{"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": LINES["/v1/embeddings"][0]}],
            endpoint="/v1/embeddings", window="72h",
        )  # fmt: skip
    assert getattr(refused.value, "status_code", None) == 400
