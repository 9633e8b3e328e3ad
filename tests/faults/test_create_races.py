"""Creates that race over two API processes: none of the promises of one process may need that it is alone."""

from itertools import count

import httpx
import pytest

from tests.api.create_rounds import (
    create,
    create_against_delete,
    fifty_at_an_open_limit_of_two,
    open_batches,
    upload,
)
from tests.faults.conftest import Nodes
from tests.racing import together

pytestmark = [pytest.mark.conformance, pytest.mark.deep, pytest.mark.timeout(1_200)]

ROUNDS = 100
UPLOADS = 200


def test_fifty_creates_take_exactly_two_slots_a_hundred_times(nodes: Nodes) -> None:
    """50 at once at an open limit of 2, over two processes: always two batches and 48 refusals that leave nothing."""
    for _ in range(ROUNDS):
        fifty_at_an_open_limit_of_two(nodes.clients, nodes.account_id)


def test_creates_and_deletes_of_their_inputs(nodes: Nodes) -> None:
    """40 at once, each pair on one process or two: a batch with its file, or neither."""
    open_batches(nodes.account_id, 1_000)
    for _ in range(10):
        create_against_delete(nodes.clients, nodes.account_id)


def test_what_one_process_took_the_other_can_use_at_once(nodes: Nodes) -> None:
    """200 uploads, each followed at once by a create on a connection to the other process: no one fails."""
    open_batches(nodes.account_id, 1_000)
    first, second = nodes.clients
    assert [create(second, upload(first)).status_code for _ in range(UPLOADS)] == [200] * UPLOADS


@pytest.mark.parametrize("headers", [{"Idempotency-Key": "k"}, {"X-Stainless-Retry-Count": "1"}])
def test_a_retry_that_reaches_another_process(nodes: Nodes, headers: dict[str, str]) -> None:
    """20 equal creates at once over both processes, by key or as retries: one batch, and equal answers."""
    file_id, turns = upload(nodes.clients[0]), count()
    wanted = {"input_file_id": file_id, "endpoint": "/v1/embeddings", "completion_window": "24h"}

    def one() -> httpx.Response:
        client = nodes.clients[next(turns) % len(nodes.clients)]
        return client.post("/v1/batches", json=wanted, headers=headers)

    answers = [one for one in together(20, one) if isinstance(one, httpx.Response)]
    assert [one.status_code for one in answers] == [200] * 20
    assert len({one.json()["id"] for one in answers}) == 1
    assert ["idempotency-replayed" in one.headers for one in answers].count(False) == 1
