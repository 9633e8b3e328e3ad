"""Signing up, in and out, and a user's API tokens: the part of the client that needs a person instead of a token."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from gridline.client.answers import page_of, segment
from gridline.client.objects import Json, instant

Read = TypeVar("Read")

OWN_PATH = "/gridline/v1"
MAIL_PATH = f"{OWN_PATH}/mail_notices"


@dataclass(frozen=True)
class SignedIn:
    """A session that has just begun. ``secret`` is what a client is given in a token's place, and is never shown again."""

    user_id: str
    email: str
    account_id: str
    account_name: str
    secret: str = field(repr=False)

    @classmethod
    def from_json(cls, body: Json) -> "SignedIn":
        """The answer to signing up or in."""
        user, account = body["user"], body["account"]
        return cls(user["id"], user["email"], account["id"], account["name"], body["secret"])


@dataclass(frozen=True)
class Token:
    """An API token as it can be seen again: by its name, its scopes and its two ends."""

    id: str
    name: str
    scopes: tuple[str, ...]
    shown: str
    created_at: datetime | None
    last_used_at: datetime | None
    created_by: str

    @classmethod
    def from_json(cls, body: Json) -> "Token":
        """The token object."""
        return cls(
            id=body["id"],
            name=body.get("name") or "",
            scopes=tuple(body["scopes"]),
            shown=f"{body['prefix']}…{body['last_four']}",
            created_at=instant(body.get("created_at")),
            last_used_at=instant(body.get("last_used_at")),
            created_by=body.get("created_by") or "",
        )


@dataclass(frozen=True)
class NewToken:
    """A token that was just made, with its text, which is never shown again."""

    token: Token
    secret: str = field(repr=False)

    @classmethod
    def from_json(cls, body: Json) -> "NewToken":
        """The answer to making one."""
        return cls(Token.from_json(body), body["secret"])


@dataclass(frozen=True)
class MailNotices:
    """Whether batches' ends are mailed: ``off``, ``unconfirmed`` (a code was mailed) or ``on``."""

    email: str
    state: str

    @classmethod
    def from_json(cls, body: Json) -> "MailNotices":
        """The answer of each of these calls."""
        return cls(body["email"], body["state"])


class AccessCalls(ABC):
    """What a client can do about sessions and tokens. Every failure is a ClientError."""

    @abstractmethod
    def _send(self, method: str, path: str, read: Callable[[Json], Read], **more: Any) -> Read:
        """Make a call and read its answer, as the whole client does."""

    def sign_up(self, email: str, password: str, *, address: str | None = None) -> SignedIn:
        """Open an account and sign in to it; with the password of a user who is known, only sign in.

        ``address`` is the caller's, where this program asks for somebody else: it is heeded from trusted programs only.
        """
        return self._enter("users", {"email": email, "password": password}, address)

    def sign_in(self, email: str, password: str, *, address: str | None = None) -> SignedIn:
        """Start a session; ``address`` as for ``sign_up``."""
        return self._enter("sessions", {"email": email, "password": password}, address)

    def sign_in_with_identity(self, id_token: str, nonce: str, *, address: str | None = None) -> SignedIn:
        """Start a session with an ID token of the platform's identity provider; ``address`` as for ``sign_up``.

        Somebody new gets an account by it.
        """
        return self._enter("sessions/identity", {"id_token": id_token, "nonce": nonce}, address)

    def sign_out(self) -> None:
        """End the session that this client carries."""
        self._send("DELETE", f"{OWN_PATH}/sessions", dict)

    def tokens(self) -> tuple[Token, ...]:
        """The account's tokens, newest first."""
        return self._send("GET", f"{OWN_PATH}/tokens", page_of(Token.from_json)).data

    def create_token(self, name: str, scopes: Sequence[str] | None = None) -> NewToken:
        """Make a token; without ``scopes`` it has both."""
        body = {"name": name} if scopes is None else {"name": name, "scopes": list(scopes)}
        return self._send("POST", f"{OWN_PATH}/tokens", NewToken.from_json, json=body)

    def revoke_token(self, token_id: str) -> None:
        """End a token for good. Twice is as good as once."""
        self._send("DELETE", f"{OWN_PATH}/tokens/{segment(token_id)}", dict)

    def set_budget(self, credits_: str | None) -> None:
        """Let the account's batches hold so many credits a UTC month; None: no budget."""
        if credits_ is None:
            self._send("DELETE", f"{OWN_PATH}/budget", dict)
        else:
            self._send("POST", f"{OWN_PATH}/budget", dict, json={"limit": credits_})

    def mail_notices(self) -> MailNotices:
        """Whether batches' ends are mailed to the signed-in user."""
        return self._send("GET", MAIL_PATH, MailNotices.from_json)

    def ask_for_mails(self) -> MailNotices:
        """Have a code mailed; the mails begin when it comes back."""
        return self._send("POST", MAIL_PATH, MailNotices.from_json)

    def confirm_mails(self, code: str) -> MailNotices:
        """Send the code back."""
        return self._send("POST", f"{MAIL_PATH}/confirm", MailNotices.from_json, json={"code": code})

    def stop_mails(self) -> MailNotices:
        """Get no more of them."""
        return self._send("DELETE", MAIL_PATH, MailNotices.from_json)

    def _enter(self, where: str, body: dict[str, str], address: str | None) -> SignedIn:
        headers = {"X-Forwarded-For": address} if address else {}
        return self._send("POST", f"{OWN_PATH}/{where}", SignedIn.from_json, json=body, headers=headers)
