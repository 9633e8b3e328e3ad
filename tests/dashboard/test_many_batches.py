"""The first page of an account with ten thousand batches, on the live API."""

import time

import pytest
from sqlalchemy import Engine, text

from tests.api.conftest import Customer, address, ann, bob, database, pepper, shared_database, windows
from tests.dashboard.conftest import SignIn, Visit, text_of

__all__ = ["address", "ann", "bob", "database", "pepper", "shared_database", "windows"]

pytestmark = pytest.mark.programs

MANY = 10_000
ROUNDS = 5
SLOWER_MAX = 2.0
FILL = """
INSERT INTO batches SELECT (jsonb_populate_record(b, jsonb_build_object(
    'id', 'batch_many' || lpad(n::text, 19, '0'), 'status', 'failed', 'ended_at', clock_timestamp(),
    'failed_at', clock_timestamp(), 'waiting', null, 'reason_code', null,
    'sequence', nextval(pg_get_serial_sequence('batches', 'sequence'))))).*
FROM batches b, generate_series(1, :many) n WHERE b.id = :pattern
"""


def seconds(one: Visit, screen: str) -> float:
    """The shortest of some runs of the page."""
    found = []
    for _ in range(ROUNDS):
        begun = time.monotonic()
        one.run(screen)
        found.append(time.monotonic() - begun)
    return min(found)


def test_ten_thousand_batches_are_as_quick_as_a_hundred(
    sign_in: SignIn, address: str, ann: Customer, bob: Customer, database: Engine
) -> None:
    """Overview and list take no longer, side by side, for an account with ten thousand batches than for one with a hundred."""
    for customer, many in ((ann, MANY), (bob, 100)):
        pattern = customer.batch()["id"]
        with database.begin() as connection:
            rows = FILL.replace("batch_many", f"batch_m{customer.account_id[-4:]}")
            connection.execute(text(rows), {"many": many, "pattern": pattern})
    with database.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE batches"))
    few, many_ = sign_in(address, bob.token), sign_in(address, ann.token)
    for screen in ("overview", "batches"):
        seconds(few, screen), seconds(many_, screen)  # the first runs find nothing warm
        assert seconds(many_, screen) <= SLOWER_MAX * seconds(few, screen)
    assert "Show more" in text_of(many_.page)
