"""Parameters in the address: a call that asks for a token takes those that it describes, and no other."""

import pytest
from sqlalchemy import Engine

from tests.api.conftest import Customer
from tests.api.people import signed_up
from tests.api.test_scopes import GUARDED, Call


@pytest.mark.parametrize("call", GUARDED, ids=lambda one: f"{one.method} {one.path}")
def test_a_parameter_that_a_call_does_not_know_is_refused(database: Engine, address: str, call: Call) -> None:
    """A misspelt parameter is a 400 that names it and what the call takes, never passed over."""
    with signed_up(address, "ann") as ann:
        # A session, which opens every route.
        answer = ann.http.request(call.method, f"{call.path}?limt=5")
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("unknown_parameter", "limt")
    assert "in its address this call takes" in error["message"]


def test_the_refusal_says_what_the_call_takes(ann: Customer) -> None:
    """The parameters of the call stand in the message, so that a slip of the pen is seen at once."""
    message = ann.http.get("/v1/files?ordr=asc").json()["error"]["message"]
    assert message.endswith("takes after, limit, order, purpose.")


def test_a_wrong_token_learns_nothing_of_parameters(ann: Customer) -> None:
    """Who calls is asked before what is asked for."""
    answer = ann.http.get("/v1/files?limt=5", headers={"Authorization": "Bearer wrong"})
    assert answer.status_code == 401
