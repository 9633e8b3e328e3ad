"""The client's calls for people: what they send, what they read, and what they never show."""

import json
from collections.abc import Callable

import httpx
import pytest

from gridline.client import Client, ClientError

SESSION = {
    "user": {"id": "user_a", "email": "ann@example.com"},
    "account": {"id": "acct_a", "name": "ann"},
    "secret": "gl_session_x",
}
TOKEN = {
    "id": "tok_a",
    "name": "n",
    "scopes": ["read"],
    "prefix": "gl_live_",
    "last_four": "7Yqk",
    "created_at": 0,
}


def client(answer: Callable[[httpx.Request], httpx.Response], token: str = "") -> Client:
    """A client before an API of one answer."""
    return Client("http://api", token, transport=httpx.MockTransport(answer))


def test_nobody_sends_no_credential() -> None:
    """Before signing in there is no Authorization header; the caller's address is passed on where one is given."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=SESSION)

    with client(answer) as nobody:
        signed = nobody.sign_up("a@b.de", "pw", address="203.0.113.1")
        nobody.sign_in("a@b.de", "pw")
    assert [one.url.path for one in seen] == ["/gridline/v1/users", "/gridline/v1/sessions"]
    assert json.loads(seen[0].content) == {"email": "a@b.de", "password": "pw"}
    assert [one.headers.get("authorization") for one in seen] == [None, None]
    assert [one.headers.get("x-forwarded-for") for one in seen] == ["203.0.113.1", None]
    assert (signed.email, signed.account_id) == ("ann@example.com", "acct_a")
    assert "gl_session" not in repr(signed)


def test_a_new_tokens_text_is_not_part_of_its_looks() -> None:
    """Printed or logged by mistake, a token that was just made shows its two ends only."""
    with client(
        lambda _: httpx.Response(200, json=TOKEN | {"secret": "gl_live_whole"}), "gl_session_x"
    ) as user:
        made = user.create_token("n")
    assert made.secret == "gl_live_whole"
    assert made.token.shown == "gl_live_…7Yqk"
    assert "whole" not in repr(made)


def test_an_id_cannot_climb_out_of_its_path() -> None:
    """Whatever is given as a token's id stays one segment of the address."""
    paths: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.raw_path)
        return httpx.Response(404, json={"error": {"message": "No.", "code": "not_found"}})

    with client(answer, "gl_session_x") as user, pytest.raises(ClientError):
        user.revoke_token("../sessions")
    assert paths == [b"/gridline/v1/tokens/%2E%2E%2Fsessions"]
