"""People for tests: users who signed up, each with a client that carries the session."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

import httpx

from tests.api.conftest import HELD_TO_THE_DOCUMENT

PASSWORD = "correct horse battery"


@dataclass
class Person:
    """A user with a session; every answer is held to the document."""

    email: str
    secret: str
    account_id: str
    http: httpx.Client

    def token(self, **more: Any) -> dict[str, Any]:
        """Make a token; the answer."""
        answer = self.http.post("/gridline/v1/tokens", json={"name": "laptop"} | more)
        assert answer.status_code == 200, answer.text
        made: dict[str, Any] = answer.json()
        return made


def fresh_email(name: str) -> str:
    """An e-mail that no test used before."""
    return f"{name}-{token_hex(4)}@example.com"


def credentials(email: str, password: str = PASSWORD) -> dict[str, str]:
    """The body of signing up and in."""
    return {"email": email, "password": password}


@contextmanager
def signed_up(address: str, name: str) -> Iterator[Person]:
    """Somebody new."""
    email = fresh_email(name)
    with httpx.Client(base_url=address, timeout=20, verify=False, event_hooks=HELD_TO_THE_DOCUMENT) as http:
        answer = http.post("/gridline/v1/users", json=credentials(email))
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        http.headers["Authorization"] = f"Bearer {shown['secret']}"
        yield Person(email, shown["secret"], shown["account"]["id"], http)
