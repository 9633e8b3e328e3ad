"""Runbook: stuck lease."""

import re

import pytest

from gridline.limits import LEASE_TTL_SECONDS
from tests.runbooks.bench import Platform
from tests.runbooks.browsing import Operator
from tests.stack import eventually, gpu_jobs

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.trial, pytest.mark.timeout(600)]


def test_stuck_lease(platform: Platform, operator: Operator) -> None:
    """A job that stands still is seen on the overview, loses its lease, and the next attempt ends the batch: nobody acts."""
    customer = platform.stack.customer("stuck")
    lapsed = platform.metric("gridline_leases_lapsed_total")
    batch_id = platform.begun(customer, platform.lines(40, slower=0.5))
    (job,) = gpu_jobs(platform.stack)
    job.suspend()

    def unheard() -> bool:
        row = next((line for line in operator.page().splitlines() if batch_id in line), "")
        found = re.search(r"(\d+) s ago", row)
        return found is not None and int(found[1]) > LEASE_TTL_SECONDS // 2

    eventually(unheard, seconds=LEASE_TTL_SECONDS, what="the overview shows an old heartbeat", every=1)

    operator.page_says(f"/batches/{batch_id}", "expired", seconds=90)
    assert platform.metric("gridline_leases_lapsed_total") > lapsed
    ended = customer.finished(batch_id, seconds=240)
    assert (ended.status, ended.request_counts.completed) == ("completed", 40)
    assert not job.is_running()
    outcomes = platform.stack.rows(
        "SELECT outcome FROM attempts WHERE batch_id = %s ORDER BY number", batch_id
    )
    assert outcomes == [("expired",), ("done",)]
    assert platform.books_hold()
