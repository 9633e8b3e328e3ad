"""Rounds of creates that race, for the fast tests and for the long ones with several servers."""

from collections.abc import Sequence
from itertools import count

import httpx
from sqlalchemy import func, select

from gridline.batches import moves
from gridline.batches.states import Status
from gridline.batches.tables import Batch, BatchEvent, IdempotencyKey, RecentCreate, RunRequest
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.ledger.tables import Hold
from tests.api.conftest import LINES
from tests.racing import together

Rows = tuple[int, ...]


def rows(account_id: str) -> Rows:
    """How many rows of each kind that a create makes the account has, and how many slots it uses."""
    with unit_of_work() as work:
        kinds = (Batch, BatchEvent, RunRequest, IdempotencyKey, RecentCreate, Hold)
        found = [
            work.session.scalar(select(func.count()).select_from(one).where(one.account_id == account_id))
            or 0
            for one in kinds
        ]
        return (*found, work.session.get_one(Account, account_id).open_batches)


def open_batches(account_id: str, most: int) -> None:
    """Set how many open batches the account may have."""
    with unit_of_work() as work:
        work.session.get_one(Account, account_id).open_batches_max = most


def upload(client: httpx.Client) -> str:
    """A file's id."""
    files = {"file": ("r.jsonl", LINES, "application/jsonl")}
    answer = client.post("/v1/files", data={"purpose": "batch"}, files=files)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def create(client: httpx.Client, file_id: str, number: int = 0) -> httpx.Response:
    """One create; another number is another body."""
    wanted = {"input_file_id": file_id, "endpoint": "/v1/embeddings", "completion_window": "24h"}
    return client.post("/v1/batches", json={**wanted, "metadata": {"number": str(number)}})


def fifty_at_an_open_limit_of_two(clients: Sequence[httpx.Client], account_id: str) -> None:
    """Two are accepted, 48 are refused with the limit and leave nothing; then both end."""
    file_id, numbers, before = upload(clients[0]), count(), rows(account_id)

    def one() -> httpx.Response:
        number = next(numbers)
        return create(clients[number % len(clients)], file_id, number)

    answers = [one for one in together(50, one) if isinstance(one, httpx.Response)]
    accepted = [one.json()["id"] for one in answers if one.status_code == 200]
    refused = [one for one in answers if one.status_code == 429]
    assert (len(accepted), len(refused)) == (2, 48), [one.status_code for one in answers]
    for answer in refused:
        error = answer.json()["error"]
        assert error["code"] == "limit_exceeded"
        assert error["limit"] == {"name": "open_batches", "limit": 2, "current": 2}
        assert answer.headers["x-should-retry"] == "false"
    # Batch, event, run request and look of the two; no key, no hold; and both slots.
    made = tuple(after - earlier for after, earlier in zip(rows(account_id), before, strict=True))
    assert made == (2, 2, 2, 0, 2, 0, 2)
    for batch_id in accepted:
        with unit_of_work() as work:
            moves.move(work, moves.locked(work, batch_id), Status.FAILED)
    assert clients[0].delete(f"/v1/files/{file_id}").status_code == 200


def create_against_delete(
    clients: Sequence[httpx.Client], account_id: str, pairs: int = 20
) -> set[tuple[int, int]]:
    """Creates and deletes of their inputs, all at once: one of each pair wins, and no batch is without its file.

    Returns the pairs of statuses that came.
    """
    files = [upload(clients[number % len(clients)]) for number in range(pairs)]
    turns, before = count(), rows(account_id)[0]

    def one() -> tuple[str, bool, httpx.Response]:
        turn = next(turns)
        # Some pairs go to one process, some to two.
        file_id, client = files[turn // 2], clients[turn // 3 % len(clients)]
        if turn % 2:
            return file_id, True, client.delete(f"/v1/files/{file_id}")
        return file_id, False, create(client, file_id)

    answers = [one for one in together(2 * pairs, one) if isinstance(one, tuple)]
    status = {(file_id, deleted): answer.status_code for file_id, deleted, answer in answers}
    assert len(status) == 2 * pairs
    found = {(status[one, False], status[one, True]) for one in files}
    assert found <= {(200, 409), (404, 200)}
    for file_id, deleted, answer in answers:
        if not deleted and answer.status_code == 200:
            assert clients[0].get(f"/v1/files/{file_id}/content").content == LINES
    assert rows(account_id)[0] - before == sum(1 for one in files if status[one, False] == 200)
    return found
