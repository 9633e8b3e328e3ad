"""Runbook: books do not prove."""

import pytest

from tests.runbooks.bench import Platform
from tests.runbooks.browsing import Operator
from tests.stack import eventually

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.trial, pytest.mark.timeout(600)]


def test_books_do_not_prove(platform: Platform, operator: Operator) -> None:
    """What somebody wrote past Gridline is named by the command, the DAG's log and the overview until it is put right."""
    customer = platform.stack.customer("tampered")
    change = "UPDATE accounts SET open_batches = open_batches {} WHERE id = %s RETURNING id"
    assert platform.stack.rows(change.format("+ 1"), customer.id)
    sentence = f"account {customer.id} counts 1 open batches, its rows are 0"
    try:
        with pytest.raises(pytest.fail.Exception, match=sentence):
            platform.stack.gridline("books")
        state, log = platform.outcome_of(platform.run_of_prove())
        assert state == "failed"
        assert sentence in log
        operator.page_says("/", sentence, seconds=30)
        eventually(
            lambda: platform.metric("gridline_proof_broken_promises") >= 1,
            seconds=30,
            what="the alert's metric",
        )
    finally:
        platform.stack.rows(change.format("- 1"), customer.id)

    state, _ = platform.outcome_of(platform.run_of_prove())
    assert state == "success"
    operator.page_says("/", "every promise holds", seconds=30)
    assert platform.books_hold()
