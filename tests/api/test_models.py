"""Models as the SDK lists them."""

import openai
import pytest

from gridline.catalog import cards
from tests.api.conftest import MODEL, Customer


def test_models_that_passed_are_listed_with_their_prices(ann: Customer, qualified: None) -> None:
    """OpenAI's keys, and beside them limits and prices as exact decimals."""
    listed = {one.id: one for one in ann.sdk.models.list()}
    assert set(listed) == {MODEL, "all-minilm-l6-v2"}
    card = cards.catalogue()[MODEL]
    shown = ann.sdk.models.retrieve(MODEL)
    assert shown == listed[MODEL]
    assert (shown.object, shown.owned_by) == ("model", card.repository.split("/")[0])
    assert shown.created > 0
    extension = (shown.model_extra or {})["gridline"]
    nanos = card.input_price_nanos
    assert extension["prices"]["input"]["nanos_per_token"] == nanos
    assert extension["prices"]["input"]["credits_per_million_tokens"] == f"{nanos / 1000:.9f}"
    assert extension["endpoints"] == ["/v1/chat/completions"]
    assert listed["all-minilm-l6-v2"].gridline["dimensions"] == 384  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", ["gpt-4o-mini", "qwen2.5-7b-instruct", "org/model", "%00"])
def test_a_model_that_is_not_listed_is_a_404(ann: Customer, qualified: None, model: str) -> None:
    """Unknown and not yet qualified alike, ids with a slash included."""
    with pytest.raises(openai.NotFoundError) as caught:
        ann.sdk.models.retrieve(model)
    assert caught.value.code == "model_not_found"
