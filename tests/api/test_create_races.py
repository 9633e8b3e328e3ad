"""Creates that race: for the last open slots, and with the delete of their input."""

import pytest

from tests.api.conftest import Customer
from tests.api.create_rounds import (
    create,
    create_against_delete,
    fifty_at_an_open_limit_of_two,
    open_batches,
    upload,
)


@pytest.mark.parametrize("time", range(5))
def test_fifty_creates_take_exactly_two_slots(ann: Customer, time: int) -> None:
    """50 at once at an open limit of 2: two batches, 48 refusals that name limit and use, no row more."""
    fifty_at_an_open_limit_of_two([ann.http], ann.account_id)


def test_a_create_and_a_delete_of_its_input(ann: Customer) -> None:
    """40 at once: each file has a batch or is gone, never both, and the loser is told which."""
    open_batches(ann.account_id, 100)
    assert create_against_delete([ann.http], ann.account_id)


def test_what_was_uploaded_can_be_used_at_once(ann: Customer, address: str) -> None:
    """A create on another connection finds the file that the upload's answer named a moment ago."""
    open_batches(ann.account_id, 100)
    with type(ann.http)(base_url=address, headers=ann.http.headers, timeout=20, verify=False) as other:
        assert {create(other, upload(ann.http)).status_code for _ in range(20)} == {200}
