"""Runbook: store full."""

import httpx
import openai
import pytest

from tests.runbooks.bench import Platform
from tests.stack import Customer, eventually, jsonl

pytestmark = [pytest.mark.stack, pytest.mark.trial, pytest.mark.timeout(600)]


def upload(platform: Platform, customer: Customer) -> None:
    """Send a file."""
    customer.openai.files.create(file=("input.jsonl", jsonl(platform.lines(2))), purpose="batch")


def test_store_full(platform: Platform) -> None:
    """Uploads are refused with 503, running batches lose nothing, and with room again all goes on without a restart."""
    customer = platform.stack.customer("full")
    batch_id = platform.begun(customer, platform.lines(40, slower=0.5))
    platform.store.full.set()

    with pytest.raises(openai.InternalServerError) as refused:
        upload(platform, customer)
    assert refused.value.status_code == 503
    assert int(refused.value.response.headers["Retry-After"]) > 0
    assert "object store did not answer as it should" in platform.log("api")
    assert "507 Insufficient Storage" in platform.log("api")

    eventually(
        lambda: [path for path in platform.store.refused if f"{batch_id}/parts/" in path and "/seg-" in path],
        seconds=60, what="a segment of the running batch is refused",
    )  # fmt: skip
    eventually(
        lambda: "the store is away" in platform.task_log(batch_id, "infer_partition"),
        seconds=60, what="the task's log says so",
    )  # fmt: skip
    ready = httpx.get(f"{customer.url}/readyz", timeout=30)
    assert ready.status_code == 200

    platform.store.full.clear()

    upload(platform, customer)
    ended = customer.finished(batch_id, seconds=300)
    assert (ended.status, ended.request_counts.completed) == ("completed", 40)
    assert "bear out their charges" in platform.stack.gridline("books", "--files")
