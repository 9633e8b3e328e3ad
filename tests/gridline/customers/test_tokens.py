"""Bearer tokens: format, look-up, revocation, audit."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine, event, select, text

from gridline.clock import FrozenClock
from gridline.customers import memory, tokens
from gridline.customers.errors import ScopeUnknown
from gridline.customers.tables import Audit, Token
from gridline.db.work import unit_of_work
from gridline.errors import NotAuthenticated, NotFound
from gridline.settings import read_settings


def issue(account_id: str, *scopes: str) -> tuple[Token, str]:
    with unit_of_work() as work:
        return tokens.issue(work, account_id, "laptop", scopes=scopes or tokens.SCOPES, actor="operator:ann")


def test_a_token_opens_its_account_until_it_is_revoked(account_id: str) -> None:
    """A fresh token is found by its text; revoked, it is refused from the next request on, and stays so."""
    token, secret = issue(account_id)
    with unit_of_work() as work:
        assert tokens.authenticate(work, secret).account_id == account_id
    for _ in range(2):
        with unit_of_work() as work:
            tokens.revoke(work, account_id, token.id, actor="operator:ann")
    with unit_of_work() as work, pytest.raises(NotAuthenticated):
        tokens.authenticate(work, secret)


def test_the_format_carries_its_own_check() -> None:
    """gl_live_, 32 base62 characters and a CRC-32: one changed character is told without a look-up."""
    secret = "gl_live_" + "a" * 32
    secret += tokens.checksum(secret)
    assert len(secret) == 8 + 32 + 6
    assert tokens.well_formed(secret)
    assert not tokens.well_formed(secret.replace("aa", "ab", 1))
    assert not tokens.well_formed(secret[:-1])
    assert not tokens.well_formed("")


def test_nothing_stored_opens_anything(account_id: str, owner: Engine) -> None:
    """A copy of the database holds no token's text, and its hashes are worthless without the pepper."""
    token, secret = issue(account_id)
    with owner.connect() as connection:
        row = connection.execute(text("SELECT t::text FROM tokens t")).scalar_one()
        assert secret not in row
        assert secret[8:40] not in row
    assert token.last_four == secret[-4:]
    with pytest.MonkeyPatch.context() as patch:
        other = replace(read_settings({}), token_pepper="another")
        patch.setattr(tokens, "settings", lambda: other)
        assert tokens.hashed(secret) != token.hash


@pytest.mark.parametrize("wrong", ["", "x", "gl_live_" + "a" * 38, "gl_live_\udcff", "é" * 46, "a" * 100_000])
def test_unknown_and_malformed_cost_the_same_look_up(account_id: str, database: Engine, wrong: str) -> None:
    """Whatever is wrong with a token, one statement is run and the answer is the same."""
    statements: list[str] = []
    event.listen(database, "before_cursor_execute", lambda *call: statements.append(call[2]))
    with unit_of_work() as work, pytest.raises(NotAuthenticated, match="Incorrect API key provided"):
        tokens.authenticate(work, wrong)
    assert len(statements) == 1


def test_an_expired_token_is_refused(account_id: str, clock: FrozenClock) -> None:
    """A token ends at its expiry, to the second."""
    token, secret = issue(account_id)
    with unit_of_work() as work:
        work.session.get_one(Token, token.id).expires_at = clock.now() + timedelta(seconds=60)
    with unit_of_work() as work:
        tokens.authenticate(work, secret)
    clock.advance(seconds=60)
    with unit_of_work() as work, pytest.raises(NotAuthenticated):
        tokens.authenticate(work, secret)


def test_use_is_noted_once_a_minute(account_id: str, clock: FrozenClock) -> None:
    """last_used_at follows use, without a write for every poll."""
    token, secret = issue(account_id)
    seen = []
    for seconds in (0, 30, 31):
        clock.advance(seconds=seconds)
        with unit_of_work() as work:
            tokens.authenticate(work, secret)
        with unit_of_work() as work:
            seen.append(work.session.get_one(Token, token.id).last_used_at)
    first = clock.now() - timedelta(seconds=61)
    assert seen == [first, first, clock.now()]


def test_a_scope_that_no_route_knows_is_refused(account_id: str) -> None:
    """A token has at least one scope, and only known ones."""
    for scopes in ((), ("read", "admin")):
        with unit_of_work() as work, pytest.raises(ScopeUnknown):
            tokens.issue(work, account_id, "laptop", scopes=scopes, actor="operator:ann")


def test_a_foreign_token_cannot_be_revoked(account_id: str) -> None:
    """Revoking by another account's id finds nothing and changes nothing."""
    token, secret = issue(account_id)
    with unit_of_work() as work, pytest.raises(NotFound):
        tokens.revoke(work, "acct_other", token.id, actor="operator:ann")
    with unit_of_work() as work:
        tokens.authenticate(work, secret)


def test_issuing_and_revoking_are_audited_without_the_text(account_id: str) -> None:
    """The audit says who made and ended which token, once each, and never holds its text."""
    token, secret = issue(account_id)
    for _ in range(2):
        with unit_of_work() as work:
            tokens.revoke(work, account_id, token.id, actor="operator:bob")
    with unit_of_work() as work:
        rows = work.session.scalars(
            select(Audit).where(Audit.action.like("token.%")).order_by(Audit.sequence)
        ).all()
    assert [(row.action, row.actor) for row in rows] == [
        ("token.issued", "operator:ann"),
        ("token.revoked", "operator:bob"),
    ]
    assert all(row.details["token_id"] == token.id and secret not in str(row.details) for row in rows)


class Monotonic:
    """The clock that a process's memory goes by, moved by the test."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def monotonic(self) -> float:
        """Now."""
        return self.seconds


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    """An empty memory, and the clock it goes by."""
    clock = Monotonic()
    monkeypatch.setattr(tokens, "_MEMORY", memory.Memory())
    monkeypatch.setattr(tokens, "time", clock)
    monkeypatch.setattr(memory, "time", clock)
    return clock


def recognise(secret: str) -> memory.Bearer:
    with unit_of_work() as work:
        return tokens.recognise(work, secret)


def test_a_good_token_is_remembered_for_a_moment(account_id: str, passing: Monotonic) -> None:
    """Two seconds without a look-up: account, token, scopes and requests a minute; then the database is asked again."""
    token, secret = issue(account_id, "read")
    assert tokens.remembered(secret) is None
    bearer = recognise(secret)
    assert bearer == memory.Bearer(account_id, token.id, frozenset({"read"}), 600)
    passing.seconds += 1.9
    assert tokens.remembered(secret) == bearer
    assert tokens.remembered(secret + " ") is None
    passing.seconds += 0.1
    assert tokens.remembered(secret) is None


def test_what_was_revoked_elsewhere_is_believed_for_no_longer(
    account_id: str, passing: Monotonic, owner: Engine
) -> None:
    """Two seconds after the look-up began, whatever happened during it; product and cases promise five."""
    token, secret = issue(account_id)
    recognise(secret)
    with owner.begin() as connection:
        connection.execute(text("UPDATE tokens SET revoked_at = now() WHERE id = :id"), {"id": token.id})
    passing.seconds += tokens.REMEMBERED_SECONDS
    assert tokens.remembered(secret) is None
    with pytest.raises(NotAuthenticated):
        recognise(secret)
    assert tokens.REMEMBERED_SECONDS < 5


def test_a_revocation_here_works_at_once(account_id: str, passing: Monotonic) -> None:
    """The process that revokes forgets in the same moment."""
    token, secret = issue(account_id)
    recognise(secret)
    with unit_of_work() as work:
        tokens.revoke(work, account_id, token.id, actor="operator:ann")
    assert tokens.remembered(secret) is None


def test_memory_ends_where_the_token_expires(account_id: str, clock: FrozenClock, passing: Monotonic) -> None:
    """A token with half a second to live is remembered for half a second."""
    token, secret = issue(account_id)
    with unit_of_work() as work:
        work.session.get_one(Token, token.id).expires_at = clock.now() + timedelta(seconds=0.5)
    recognise(secret)
    passing.seconds += 0.4
    assert tokens.remembered(secret) is not None
    passing.seconds += 0.1
    assert tokens.remembered(secret) is None


def test_what_opens_nothing_is_never_remembered(account_id: str, passing: Monotonic) -> None:
    """A wrong token costs the same each time, and one that is made later works at once."""
    for _ in range(2):
        with pytest.raises(NotAuthenticated):
            recognise("gl_live_" + "a" * 38)
    assert tokens._MEMORY._known == {}


def test_memory_is_bounded(account_id: str, passing: Monotonic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ever new tokens take no more room: the oldest is asked for again."""
    monkeypatch.setattr(memory, "BEARERS_MAX", 3)
    secrets = [issue(account_id)[1] for _ in range(5)]
    for secret in secrets:
        recognise(secret)
    assert [tokens.remembered(secret) is not None for secret in secrets] == [False, False, True, True, True]
    recognise(secrets[4])
    assert [tokens.remembered(secret) is not None for secret in secrets] == [False, False, True, True, True]
    recognise(secrets[2])
    recognise(secrets[0])
    assert [tokens.remembered(secret) is not None for secret in secrets] == [True, False, True, False, True]
