"""A customer's first batches: real SDK, real Airflow, real engine, real books."""

import math
from decimal import Decimal
from typing import Any

import pytest

from gridline.money import credits_nanos
from tests.stack import CHAT, EMBEDDING, Customer, Stack, chat_line, embedding_line

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

QUESTIONS = (
    "What is the capital of France?",
    "Name three colours of the rainbow.",
    "What is the opposite of hot?",
    "How many days does a week have?",
    "Write one sentence about the sea.",
    "What do bees make?",
    "Which planet do we live on?",
    "Say hello in Spanish.",
)


def charge_nanos(lines: list[dict[str, Any]], receipt: dict[str, Any]) -> int:
    """The charge as a customer recomputes it: delivered tokens times the receipt's rates, exactly."""
    usages = [line["response"]["body"]["usage"] for line in lines]
    rates = {name: credits_nanos(rate) for name, rate in receipt["rates"].items()}
    return sum(
        usage["prompt_tokens"] * rates["input_token"]
        + usage.get("completion_tokens", 0) * rates["output_token"]
        for usage in usages
    )


def assert_settled(customer: Customer, stack: Stack, batch: Any, lines: list[dict[str, Any]]) -> None:
    """The charge is what the file says, nothing is held any more, and the books hold."""
    receipt = customer.get(f"/batches/{batch.id}/receipt")
    charged = credits_nanos(receipt["charged"])
    assert charged == charge_nanos(lines, receipt) > 0
    assert credits_nanos(receipt["hold"]) == charged + credits_nanos(receipt["returned"])
    balance = customer.get("/account")["balance"]
    assert Decimal(balance["held"]) == 0
    spent = sum(
        credits_nanos(customer.get(f"/batches/{one.id}/receipt")["charged"])
        for one in customer.openai.batches.list()
        if one.status == "completed"
    )
    assert credits_nanos(balance["available"]) == credits_nanos("10") - spent
    assert "The books hold" in stack.gridline("books")


def test_chat_lines_are_answered_in_order_and_paid_exactly(stack: Stack) -> None:
    """Eight questions come back in input order, Paris among them, and cost what their tokens cost."""
    customer = stack.customer("first-chat")
    created = customer.create([chat_line(number, text) for number, text in enumerate(QUESTIONS)])
    assert created.status == "validating"
    batch = customer.finished(created.id)
    assert batch.status == "completed", batch
    assert batch.model == CHAT
    assert batch.error_file_id is None
    lines = customer.lines(batch.output_file_id)
    assert [line["custom_id"] for line in lines] == [f"line-{number}" for number in range(len(QUESTIONS))]
    assert "Paris" in lines[0]["response"]["body"]["choices"][0]["message"]["content"]
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (len(QUESTIONS), len(QUESTIONS), 0)
    usages = [line["response"]["body"]["usage"] for line in lines]
    assert batch.usage.input_tokens == sum(usage["prompt_tokens"] for usage in usages)
    assert batch.usage.output_tokens == sum(usage["completion_tokens"] for usage in usages)
    assert_settled(customer, stack, batch, lines)


def test_embedding_lines_are_answered_in_order_and_paid_exactly(stack: Stack) -> None:
    """Four sentences become four unit vectors, alike ones nearer than unlike ones; only input is charged."""
    customer = stack.customer("first-embedding")
    texts = ["A cat sat.", "A kitten sat.", "Interest rates rose.", "Central banks raised rates."]
    lines_in = [embedding_line(number, text) for number, text in enumerate(texts)]
    batch = customer.finished(customer.create(lines_in, endpoint="/v1/embeddings").id)
    assert (batch.status, batch.model) == ("completed", EMBEDDING), batch
    lines = customer.lines(batch.output_file_id)
    assert [line["custom_id"] for line in lines] == [f"line-{number}" for number in range(len(texts))]
    vectors = [line["response"]["body"]["data"][0]["embedding"] for line in lines]
    assert {len(vector) for vector in vectors} == {384}
    assert all(math.isclose(math.hypot(*vector), 1, abs_tol=1e-3) for vector in vectors)

    def likeness(one: int, other: int) -> float:
        return math.fsum(a * b for a, b in zip(vectors[one], vectors[other], strict=True))

    assert likeness(0, 1) > likeness(0, 2)
    assert likeness(2, 3) > likeness(1, 2)
    assert_settled(customer, stack, batch, lines)


def test_a_file_with_bad_lines_fails_with_their_numbers_and_costs_nothing(stack: Stack) -> None:
    """Each bad line is named by its physical number; nothing is held or charged; the next batch runs."""
    customer = stack.customer("bad-lines")
    good = chat_line(1, QUESTIONS[0])
    no_model = chat_line(2, "hi") | {"body": {"messages": [{"role": "user", "content": "hi"}]}}
    bad = [good, "{not json", "", no_model, chat_line(1, "the same custom_id"), chat_line(5, "x", tokens=0)]
    batch = customer.finished(customer.create(bad).id)
    assert batch.status == "failed"
    assert batch.output_file_id is None
    assert batch.error_file_id is None
    assert {error.line for error in batch.errors.data} == {2, 4, 5, 6}
    assert all(error.code and error.message for error in batch.errors.data)
    balance = customer.get("/account")["balance"]
    assert (Decimal(balance["available"]), Decimal(balance["held"])) == (Decimal(10), Decimal(0))
    following = customer.finished(customer.create([good]).id)
    assert following.status == "completed"
    assert "The books hold" in stack.gridline("books")
