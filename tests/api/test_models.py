"""Models as the SDK lists them."""

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import openai
import pytest

from gridline.catalog import adapters, cards
from gridline.catalog.tables import Adapter
from gridline.db.work import unit_of_work
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


def test_an_id_with_a_slash_is_one_id(ann: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of the form org/name is found as the SDK writes it, as a path, and in the list."""
    card = replace(cards.catalogue()[MODEL], id="org/some-model")
    monkeypatch.setattr(cards, "catalogue", lambda: {card.id: card})
    with unit_of_work() as work:
        cards.record_qualification(
            work, card, engine_version="1", passed=True, tokens_per_second=1, details={}
        )
    assert ann.sdk.models.retrieve(card.id).id == card.id
    assert [one.id for one in ann.sdk.models.list()] == [card.id]
    for path in ("org/some-model", "org%2Fsome-model"):
        assert ann.http.get(f"/v1/models/{path}").json()["id"] == card.id
    for path in ("org", "org/", "org//some-model", "org/some-model/", "../models/org", "some-model"):
        answer = ann.http.get(f"/v1/models/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found"), path


def test_a_model_keeps_the_date_of_its_first_pass(ann: Customer, qualified: None) -> None:
    """Qualifying again, well or badly and then well, does not change when a model was created."""
    before = ann.sdk.models.retrieve(MODEL).created
    for passed in (True, False, True):
        with unit_of_work() as work:
            work.now = datetime(2100, 1, 1, tzinfo=UTC)  # later than any other run
            cards.record_qualification(
                work,
                cards.catalogue()[MODEL],
                engine_version="2",
                passed=passed,
                tokens_per_second=1,
                details={},
            )
    assert ann.sdk.models.retrieve(MODEL).created == before


@pytest.mark.parametrize("model", [MODEL, "ft:unknown:model"])
def test_no_model_can_be_deleted(ann: Customer, qualified: None, model: str) -> None:
    """An operator retires models of one's own: a delete is a 405 that says what is taken, and SDKs do not repeat it."""
    with pytest.raises(openai.APIStatusError) as caught:
        ann.sdk.models.delete(model)
    assert (caught.value.status_code, caught.value.code) == (405, "method_not_allowed")
    assert caught.value.response.headers["Allow"] == "GET, HEAD"
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert MODEL in {one.id for one in ann.sdk.models.list()}


def imported(customer: Customer, name: str) -> str:
    """An adapter of the customer's account, as an import leaves it."""
    digest = sha256(name.encode()).hexdigest()
    row = Adapter(
        id=f"ft:{MODEL}:{name}:{digest[:12]}", short_id=digest[:12], account_id=customer.account_id, base=MODEL,
        rank=8, bytes=1, sha256=digest, object_key=f"adapters/{customer.account_id}/{digest[:12]}",
        config={"r": 8}, qlora=name == "four-bit", created_at=datetime(2026, 1, 5, tzinfo=UTC), retired_at=None,
    )  # fmt: skip
    with unit_of_work() as work:
        work.session.add(row)
        return row.id


def test_an_account_sees_its_own_adapters_alone(ann: Customer, bob: Customer, qualified: None) -> None:
    """Listed and found by their owner, with the base's prices; to others they do not exist; retired they are gone."""
    own, noted = imported(ann, "own"), imported(ann, "four-bit")
    listed = {one.id: one for one in ann.sdk.models.list()}
    assert {own, noted} <= listed.keys()
    shown = ann.sdk.models.retrieve(own)
    assert shown == listed[own]
    assert (shown.object, shown.owned_by) == ("model", ann.account_id)
    extension = (shown.model_extra or {})["gridline"]
    assert extension["adapter"] == {"base": MODEL, "rank": 8, "note": None}
    assert extension["prices"] == (listed[MODEL].model_extra or {})["gridline"]["prices"]
    assert "4-bit" in listed[noted].gridline["adapter"]["note"]  # type: ignore[attr-defined]
    assert not {own, noted} & {one.id for one in bob.sdk.models.list()}
    with pytest.raises(openai.NotFoundError) as caught:
        bob.sdk.models.retrieve(own)
    assert caught.value.code == "model_not_found"
    with unit_of_work() as work:
        assert adapters.offer(work, ann.account_id).own.keys() == {own, noted}
        assert adapters.offer(work, ann.account_id).bases.keys() == {MODEL}
        assert adapters.offer(work, bob.account_id).own == {}
        adapters.retire(work, own, actor="operator:test")
        left = adapters.offer(work, ann.account_id)
        assert set(left.own) == {noted}
        assert left.retired == {own}
    assert own not in {one.id for one in ann.sdk.models.list()}
    with pytest.raises(openai.NotFoundError):
        ann.sdk.models.retrieve(own)
