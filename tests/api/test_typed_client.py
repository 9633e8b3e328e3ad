"""Our own typed client against the live API: what the dashboard and the command line read is what it serves."""

import pytest
from sqlalchemy import Engine

from gridline.catalog import cards
from gridline.client import Client, ClientError
from gridline.db.work import unit_of_work
from gridline.ledger import holding, settling
from tests.api.conftest import LINES, MODEL, Customer


@pytest.fixture
def client(address: str, ann: Customer) -> Client:
    """Ann's typed client."""
    return Client(address, ann.token)


def test_account_batches_files_and_events(client: Client, ann: Customer) -> None:
    """Every object that the pages read of a new batch is read from the real API without a guess."""
    created = str(ann.batch(metadata={"description": "first"})["id"])
    with client:
        account = client.account()
        assert account.id == ann.account_id
        assert (account.available_nanos, account.held_nanos) == (10 * 10**9, 0)
        assert account.limits["open_batches"].current == 1
        batch = client.batch(created)
        assert (batch.status, batch.metadata["description"], batch.ended) == ("validating", "first", False)
        assert batch.wait is not None
        assert batch.wait.reason_code == "starting"
        assert batch.wait.since is not None
        assert [one.id for one in client.batches(limit=1).data] == [created]
        assert client.events(created)[0].kind == "created"
        assert client.file(batch.input_file_id).bytes == len(LINES)
        with client.download(batch.input_file_id) as got:
            assert got.length == len(LINES)
            assert b"".join(got.chunks) == LINES
        with pytest.raises(ClientError) as caught:
            client.receipt(created)
        assert caught.value.not_found
        assert caught.value.request_id


def test_receipts_before_and_after_settling(client: Client, ann: Customer) -> None:
    """Held, charged and returned come out of the books to the last digit, first open and then settled."""
    batch_id, card = str(ann.batch()["id"]), cards.catalogue()[MODEL]
    charge = 10 * card.input_price_nanos + 4 * card.output_price_nanos
    with client:
        with unit_of_work() as work:
            holding.place(
                work, batch_id=batch_id, account_id=ann.account_id, amount_nanos=10 * charge, card=card.copy()
            )
        receipt = client.receipt(batch_id)
        assert (receipt.state, receipt.hold_nanos, receipt.charged_nanos) == ("held", 10 * charge, None)
        assert client.account().held_nanos == 10 * charge
        with unit_of_work() as work:
            settling.settle(
                work, batch_id=batch_id, charge_nanos=charge, lines=2, input_tokens=10, output_tokens=4
            )
        receipt = client.receipt(batch_id)
        assert (receipt.state, receipt.charged_nanos, receipt.returned_nanos) == (
            "settled",
            charge,
            9 * charge,
        )
        assert (receipt.lines, receipt.input_tokens, receipt.output_tokens) == (2, 10, 4)
        assert (receipt.input_price_nanos, receipt.output_price_nanos) == (
            card.input_price_nanos,
            card.output_price_nanos,
        )
        assert client.batch(batch_id).cost_nanos == charge


def test_models_have_a_kind(client: Client, qualified: Engine) -> None:
    """The first-run snippet finds a chat model in the list."""
    with client:
        assert "chat" in {model.kind for model in client.models()}


def test_foreign_batches_are_missing(client: Client, bob: Customer) -> None:
    """Another account's batch, its events and its receipt are the same 404."""
    foreign = str(bob.batch()["id"])
    with client:
        for read in (client.batch, client.events, client.receipt):
            with pytest.raises(ClientError) as caught:
                read(foreign)
            assert caught.value.not_found


def test_a_wrong_token_is_told(address: str, ann: Customer) -> None:
    """The error that ends a dashboard session is the API's own 401."""
    with Client(address, "gl-wrong") as stranger, pytest.raises(ClientError) as caught:
        stranger.account()
    assert caught.value.token_refused
