"""Runbook: lost scheduler."""

import pytest

from tests.runbooks.bench import Platform
from tests.runbooks.browsing import Operator
from tests.stack import eventually

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.trial, pytest.mark.timeout(600)]

SCHEDULER = "parts:airflow-scheduler"


def test_lost_scheduler(platform: Platform, operator: Operator) -> None:
    """Without it accepted batches stay about to start, and say so; started again it takes up all of them."""
    customer = platform.stack.customer("no-scheduler")
    running = platform.begun(customer, platform.lines(40, slower=0.5))
    killed = platform.program(SCHEDULER)
    assert killed is not None
    killed.kill()
    eventually(
        lambda: platform.program(SCHEDULER) not in {None, killed}, seconds=60, what="it is started again"
    )
    try:
        platform.supervisorctl("stop", SCHEDULER)
        waiting = customer.create(platform.lines(4)).id
        eventually(
            lambda: "scheduler" in platform.status()["Airflow"],
            seconds=60,
            what="the status names it",
            every=1,
        )
        assert platform.status()["airflow-scheduler"] == "STOPPED"
        operator.page_says(f"/batches/{waiting}", "starting", seconds=10)
        eventually(
            lambda: platform.metric('gridline_batches_oldest_wait_seconds{reason="starting"}') > 10,
            seconds=60, what="the alert's metric grows",
        )  # fmt: skip
    finally:
        assert "started" in platform.supervisorctl("start", SCHEDULER)

    for batch_id in (waiting, running):
        assert customer.finished(batch_id, seconds=300).status == "completed"
    assert platform.status()["Airflow"] == "ready"
    assert platform.books_hold()
