"""Tokens through the live API: made, listed and revoked by a session, never by a token."""

from collections.abc import Iterator

import httpx
import pytest
from sqlalchemy import Engine

from gridline import limits
from gridline.storage.objects import Store
from tests.api.conftest import Customer
from tests.api.people import Person, signed_up

TOKENS = "/gridline/v1/tokens"


@pytest.fixture
def eve(address: str, database: Engine, store: Store) -> Iterator[Person]:
    """Somebody who has signed up."""
    with signed_up(address, "eve") as one:
        yield one


def call(address: str, token: str, path: str = "/v1/batches", method: str = "GET") -> httpx.Response:
    """One call with a token."""
    return httpx.request(method, address + path, headers={"Authorization": f"Bearer {token}"}, verify=False)


def test_a_token_lives_from_its_making_to_its_revocation(eve: Person, address: str) -> None:
    """Shown once, listed without its text, working; revoked, refused from the next request on, and gone from the list."""
    made = eve.token(name=" nightly runs ")
    assert (made["name"], made["scopes"], made["created_by"]) == (
        "nightly runs",
        ["read", "routing:write"],
        "user",
    )
    assert made["secret"].startswith(made["prefix"])
    assert made["secret"].endswith(made["last_four"])
    assert call(address, made["secret"]).status_code == 200
    listed = eve.http.get(TOKENS)
    (one,) = listed.json()["data"]
    assert one.pop("last_used_at") is not None
    assert one == {key: value for key, value in made.items() if key not in ("secret", "last_used_at")}
    assert made["secret"] not in listed.text
    for _ in range(2):
        assert eve.http.delete(f"{TOKENS}/{made['id']}").json() == {
            "id": made["id"],
            "object": "token",
            "deleted": True,
        }
    assert call(address, made["secret"]).status_code == 401
    assert eve.http.get(TOKENS).json()["data"] == []


def test_a_token_makes_lists_and_ends_no_token(eve: Person, ann: Customer, address: str) -> None:
    """Whatever its scopes, a token on these routes is a 403 that says how to sign in, and changes nothing."""
    made = eve.token()
    for token in (made["secret"], ann.token):
        for method, path in (("POST", TOKENS), ("GET", TOKENS), ("DELETE", f"{TOKENS}/{made['id']}"), ("DELETE", "/gridline/v1/sessions")):  # fmt: skip
            refused = call(address, token, path, method)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_permissions")
            assert "gridline setup --apply" in refused.json()["error"]["message"]
    assert [one["id"] for one in eve.http.get(TOKENS).json()["data"]] == [made["id"]]


def test_scopes_are_chosen(eve: Person, address: str) -> None:
    """A token may do what was chosen and nothing else; none or an unknown scope is refused by its place."""
    reads = eve.token(scopes=["read"])
    assert reads["scopes"] == ["read"]
    assert call(address, reads["secret"]).status_code == 200
    assert call(address, reads["secret"], method="POST").status_code == 403
    for scopes, code, param in (
        ([], "empty_array", "scopes"),
        (["read", "admin"], "invalid_value", "scopes[1]"),
        ("read", "invalid_type", "scopes"),
        ([1], "invalid_type", "scopes[0]"),
    ):
        answer = eve.http.post(TOKENS, json={"name": "x", "scopes": scopes})
        assert answer.status_code == 400
        assert (answer.json()["error"]["code"], answer.json()["error"]["param"]) == (code, param)


@pytest.mark.parametrize(
    ("name", "code"),
    [("", "invalid_value"), ("  ", "invalid_value"), ("a\nb", "invalid_value"), ("x" * 101, "string_above_max_length"), (7, "invalid_type"), (None, "missing_required_parameter")],
)  # fmt: skip
def test_a_name_says_what_the_token_is_for(eve: Person, name: object, code: str) -> None:
    """1 to 100 printable characters."""
    answer = eve.http.post(TOKENS, json={"name": name})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert answer.json()["error"]["param"] == "name"


def test_an_account_has_so_many_tokens(eve: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is a 429 with limit and use; a revocation makes room."""
    monkeypatch.setattr(limits, "TOKENS_PER_ACCOUNT_MAX", 2)
    first = eve.token()
    eve.token()
    refused = eve.http.post(TOKENS, json={"name": "third"})
    assert (refused.status_code, refused.json()["error"]["limit"]) == (
        429,
        {"name": "tokens", "limit": 2, "current": 2},
    )
    eve.http.delete(f"{TOKENS}/{first['id']}")
    eve.token()


def test_tokens_of_others_are_not_there(eve: Person, address: str, store: Store) -> None:
    """Another account's token is listed nowhere, and revoking it is the 404 that no token gets; it goes on working."""
    made = eve.token()
    with signed_up(address, "mallory") as mallory:
        assert mallory.http.get(TOKENS).json()["data"] == []
        foreign = mallory.http.delete(f"{TOKENS}/{made['id']}")
        missing = mallory.http.delete(f"{TOKENS}/tok_{'0' * 24}")
        assert (
            foreign.status_code
            == missing.status_code
            == mallory.http.delete(f"{TOKENS}/x").status_code
            == 404
        )
        assert foreign.text.replace(made["id"], "ID") == missing.text.replace("tok_" + "0" * 24, "ID")
    assert call(address, made["secret"]).status_code == 200
