"""Runbook: wrong charge."""

import pytest

from gridline.money import credits_nanos, credits_text
from tests.runbooks.bench import Platform
from tests.runbooks.browsing import Operator

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.trial, pytest.mark.timeout(600)]

WHY = "answers were cut off, ticket 8"


def test_wrong_charge(platform: Platform, operator: Operator) -> None:
    """The charge is computed again from the file; what the operator refunds is on receipt and statement, and it proves."""
    customer = platform.stack.customer("overcharged")
    batch_id = customer.create(platform.lines(4)).id
    assert customer.finished(batch_id).status == "completed"
    charged = credits_nanos(customer.get(f"/batches/{batch_id}/receipt")["charged"])
    assert charged > 0

    assert "bear out their charges" in platform.stack.gridline("books", "--files")
    page = operator.page(f"/batches/{batch_id}")
    assert f"{credits_text(charged)} credits, 0.000000000 of them refunded" in page
    operator.send("Refund", amount=credits_text(charged), why=WHY)
    operator.reads(f"Refunded {credits_text(charged)} credits.")

    receipt = customer.get(f"/batches/{batch_id}/receipt")
    assert credits_nanos(receipt["refunded"]) == charged
    statement = customer.get("/statement")
    refund = next(one for one in statement["data"] if one["kind"] == "refund")
    assert (credits_nanos(refund["amount"]), refund["why"]) == (charged, WHY)
    assert statement["closing"] == {"available": "10.000000000", "held": "0.000000000"}
    assert "account.refund" in operator.page("/audit")
    assert platform.books_hold()
