"""Runbook: engine will not start."""

import pytest

from tests.runbooks.bench import Platform
from tests.runbooks.browsing import Operator
from tests.stack import eventually

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.trial, pytest.mark.timeout(600)]


def test_engine_will_not_start(platform: Platform, operator: Operator) -> None:
    """The batch's page and the engine keeper's log say so; once the engine can start, the batch completes by itself."""
    platform.refusal.touch()
    for engine in platform.engines():
        engine.kill()
    customer = platform.stack.customer("no-engine")
    batch = customer.create(platform.lines(4))

    eventually(
        lambda: platform.metric("gridline_batches_without_engine"), seconds=120, what="the alert's metric"
    )
    operator.page_says(f"/batches/{batch.id}", "engine_unhealthy", seconds=60)
    failed = [line for line in platform.log("engine-keeper").splitlines() if '"engine failed"' in line]
    assert "exit code 1" in failed[-1]
    assert customer.openai.batches.retrieve(batch.id).status in {"validating", "in_progress"}

    platform.refusal.unlink()

    assert customer.finished(batch.id, seconds=180).status == "completed"
    eventually(
        lambda: platform.metric("gridline_batches_without_engine") == 0, seconds=60, what="the metric is 0"
    )
    assert platform.books_hold()
