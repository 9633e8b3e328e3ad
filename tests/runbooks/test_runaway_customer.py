"""Runbook: runaway customer."""

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from tests.dashboard.test_browser import Browser
from tests.runbooks.bench import Platform
from tests.runbooks.browsing import Operator

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.trial, pytest.mark.timeout(600)]

NOTE = "We hold your second batch until your loop is mended. Write to us."


@pytest.fixture
def dashboard(platform: Platform, tmp_path: Path) -> Iterator[Browser]:
    """A customer's browser."""
    one = Browser(platform.stack.config.public_dashboard_url, tmp_path)
    yield one
    one.driver.quit()


def test_runaway_customer(platform: Platform, operator: Operator, dashboard: Browser) -> None:
    """Lower limits and a hold on the pages stop them, they read why, others go on, and released it all completes."""
    customer = platform.stack.customer("runaway")
    # A minute: it keeps the only GPU until the other one is held, on a slow machine, too.
    first = platform.begun(customer, platform.lines(40, slower=1.5))
    second = customer.create(platform.lines(4)).id

    operator.page(f"/accounts?search={customer.name}")
    operator.click(customer.name)
    operator.reads("2 of 2")
    operator.send("Limits", open_batches="1", why="a loop creates batches, asked to mend it")
    operator.reads("a loop creates batches")
    operator.page(f"/batches?account_id={customer.id}")
    operator.click(second)
    operator.reads("Waits so far")
    operator.send("Hold", note=NOTE)
    operator.reads("The batch is held.")

    with pytest.raises(openai.RateLimitError, match="2 of 1 open batches"):
        customer.create(platform.lines(1))
    told = customer.openai.batches.retrieve(second).gridline  # type: ignore[attr-defined]
    assert told["reason_code"] == "held_by_operator"
    assert NOTE.rstrip(".") in told["reason"]
    dashboard.open(f"/batch?id={second}")
    dashboard.sign_in(customer.token)
    dashboard.reads(NOTE.rstrip("."))
    neighbour = platform.stack.customer("neighbour")
    others = neighbour.create(platform.lines(4)).id
    assert neighbour.finished(others).status == "completed"
    assert customer.finished(first).status == "completed"
    assert platform.stack.rows("SELECT FROM attempts WHERE batch_id = %s", second) == []

    operator.page(f"/batches/{second}")
    operator.send("Release")
    operator.reads("The batch is released.")

    assert customer.finished(second).status == "completed"
    audit = operator.page("/audit")
    for action in ("account.limits", "batch.operator_hold", "batch.operator_release"):
        assert action in audit
    assert platform.books_hold()
