"""Runbook: bad model release."""

from typing import Any

import pytest

from tests.runbooks.bench import GOOD, Platform
from tests.runbooks.browsing import Operator
from tests.stack import CHAT, Customer

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.trial, pytest.mark.timeout(600)]

BAD = dict.fromkeys(GOOD, "I do not know.")


def offered(customer: Customer) -> list[str]:
    """The models that the customer can use."""
    return [one.id for one in customer.openai.models.list()]


def state(platform: Platform) -> str:
    """What `gridline models list` says of the model."""
    rows: list[Any] = [line.split("\t") for line in platform.stack.gridline("models", "list").splitlines()]
    return next(str(row[1]) for row in rows if row[0] == CHAT)


def test_bad_model_release(platform: Platform, operator: Operator) -> None:
    """Withdrawn, it takes no new batch while the validated one goes on; it is listed again once its known prompts pass."""
    customer = platform.stack.customer("bad-model")
    running = platform.begun(customer, platform.lines(40, slower=0.5))
    platform.answers(BAD)

    platform.stack.gridline("models", "withdraw", CHAT, "--why", "answers nothing since the release of today")

    assert state(platform) == "not qualified"
    assert CHAT not in offered(customer)
    refused = customer.finished(customer.create(platform.lines(1)).id)
    assert refused.status == "failed"
    assert [one.code for one in refused.errors.data] == ["model_not_found"]
    with pytest.raises(pytest.fail.Exception, match="did not pass and is not listed"):
        platform.stack.gridline("models", "qualify", CHAT)
    assert customer.finished(running).status == "completed"
    assert "model.withdrawn" in operator.page("/audit")

    platform.answers(GOOD)
    platform.stack.gridline("models", "qualify", CHAT)

    assert state(platform) == "listed"
    assert CHAT in offered(customer)
    assert customer.finished(customer.create(platform.lines(1)).id).status == "completed"
    assert platform.books_hold()
