"""Prices, for anybody."""

import httpx

from api import pricing
from gridline import limits
from gridline.money import NANOS_PER_CREDIT
from tests.api.conftest import MODEL, Customer


def test_prices_need_no_token_and_are_those_of_the_models(
    ann: Customer, qualified: None, address: str
) -> None:
    """Every listed model with the very rates of GET /models, what a credit is worth, and the limits."""
    answer = httpx.get(f"{address}/gridline/v1/pricing", verify=False)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=60"
    shown = answer.json()
    assert shown["credit"] == {"usd": "1.00", "nanos": NANOS_PER_CREDIT}
    assert shown["models"] == ann.http.get("/v1/models").json()["data"]
    (chat,) = (one for one in shown["models"] if one["id"] == MODEL)
    assert chat["gridline"]["prices"]["output"] == {
        "credits_per_million_tokens": "0.020000000",
        "nanos_per_token": 20,
    }
    told = {one["name"]: one["limit"] for one in shown["limits"]}
    assert told["open_batches"] == limits.OPEN_BATCHES_DEFAULT
    assert told["daily_credits"] == "100.000000000"
    assert told["file_bytes"] == limits.FILE_BYTES_MAX
    assert [one["credits"] for one in shown["packs"]] == ["10.000000000", "50.000000000", "200.000000000"]


def test_a_credit_is_worth_a_dollar() -> None:
    """The text and the unit say the same."""
    assert pricing.CREDIT_USD == "1.00"
