"""What the tests of money and capacity stand on: accounts with credit, and batches as rows."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from gridline import ids
from gridline.batches.tables import Batch, Partition
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.files.tables import File
from gridline.ledger import posting
from gridline.limits import START_BOUND_SECONDS, WINDOW_SECONDS

CARD: dict[str, Any] = {
    "id": "smollm2-135m-instruct",
    "commit": "a" * 40,
    "kind": "chat",
    "input_price_nanos": 20,
    "output_price_nanos": 60,
}


def account(work: Work, name: str, *, credit_nanos: int = 0, leases_max: int = 4) -> Account:
    """An account with its books and some credit."""
    made = accounts.open_account(work, name)
    made.leases_max = leases_max
    made.open_batches_max = made.open_batches = 1000
    work.session.flush()
    if credit_nanos:
        posting.grant(work, made.id, credit_nanos, actor="operator", why="test", key="first")
    return made


def batch(work: Work, account_id: str, *, window: str = "24h", partitions: int = 0) -> Batch:
    """A validated batch that has no hold yet, with its partitions."""
    file_id = ids.new("file")
    file = File(
        id=file_id, account_id=account_id, purpose="batch", filename="r.jsonl", bytes=1, sha256="0",
        object_key=file_id, created_at=work.now,
    )  # fmt: skip
    made = Batch(
        id=ids.new("batch"), account_id=account_id, created_by="token", endpoint="/v1/chat/completions",
        input_file_id=file_id, completion_window=window, status="validating", created_at=work.now,
        start_by=work.now + timedelta(seconds=START_BOUND_SECONDS[window]),
        expires_at=work.now + timedelta(seconds=WINDOW_SECONDS[window]),
        validated_at=work.now, model=CARD["id"], card=CARD, total=10 * partitions, reason_code="starting",
    )  # fmt: skip
    for one in (file, made):
        work.session.add(one)
        work.session.flush()
    for number in range(partitions):
        part = {"batch_id": made.id, "account_id": account_id, "number": number, "state": "waiting"}
        work.session.add(Partition(**part, lines=10, tokens_estimate=100))
    work.session.flush()
    return made


def at_once(times: int, action: Callable[[int], Any]) -> list[Any]:
    """Run the action that many times at the same moment, each in a thread; what each returned or raised."""
    barrier = threading.Barrier(times, timeout=20)

    def run(number: int) -> Any:
        barrier.wait()
        try:
            return action(number)
        except Exception as error:  # noqa: BLE001  # the error is the answer that the test looks at
            return error

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(run, range(times)))
