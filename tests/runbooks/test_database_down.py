"""Runbook: database down."""

import httpx
import pytest

from tests.runbooks.bench import Platform
from tests.stack import eventually

pytestmark = [pytest.mark.stack, pytest.mark.trial, pytest.mark.timeout(600)]


def test_database_down(platform: Platform) -> None:
    """Calls answer 503 with Retry-After while it is away; started again, a running batch completes and the books hold."""
    customer = platform.stack.customer("no-database")
    batch_id = platform.begun(customer, platform.lines(40, slower=0.5))
    try:
        platform.supervisorctl("stop", "postgres")
        answer = httpx.get(
            f"{customer.url}/v1/batches", headers={"Authorization": f"Bearer {customer.token}"}, timeout=30
        )
        assert (answer.status_code, int(answer.headers["Retry-After"]) > 0) == (503, True)
        found = platform.status()
        assert (found["postgres"], found["API"]) == ("STOPPED", "answers 503")
        eventually(
            lambda: platform.metric("gridline_keeper_leader") == 0,
            seconds=30,
            what="no keeper leads any more",
        )
    finally:
        assert "postgres: started" in platform.supervisorctl("start", "postgres")

    eventually(
        lambda: platform.metric("gridline_keeper_leader") == 1, seconds=60, what="the keeper leads again"
    )
    eventually(
        lambda: platform.status()["Airflow"] == "ready", seconds=180, what="Airflow is ready again", every=2
    )
    assert platform.status()["API"] == "ready"
    assert customer.finished(batch_id, seconds=300).status == "completed"
    assert platform.books_hold()
