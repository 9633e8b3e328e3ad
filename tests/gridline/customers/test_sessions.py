"""Sessions: what one opens, when it ends, and that nothing stored opens anything."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine, delete, event, func, select, text

from gridline import limits
from gridline.clock import FrozenClock
from gridline.customers import memory, sessions, tokens, users
from gridline.customers.tables import Audit, Member, Session
from gridline.db.work import unit_of_work
from gridline.errors import NotAuthenticated


@pytest.fixture
def user_id(database: Engine, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user, and a process that remembers nothing."""
    monkeypatch.setattr(sessions, "_MEMORY", memory.Memory())
    with unit_of_work() as work:
        return users.sign_up(work, "ann@example.com", "hash").id


def start(user_id: str) -> tuple[Session, str]:
    """Sign in."""
    with unit_of_work() as work:
        return sessions.start(work, user_id)


def recognise(secret: str) -> memory.Bearer:
    """Whom the secret brings, as the database says."""
    with unit_of_work() as work:
        return sessions.recognise(work, secret)


def refused(secret: str) -> bool:
    """Whether it opens nothing."""
    try:
        recognise(secret)
    except NotAuthenticated:
        return True
    return False


def test_a_session_opens_its_account_until_it_is_ended(user_id: str) -> None:
    """It brings user, account and both scopes; signed out, twice even, it opens nothing from the next request on."""
    session, secret = start(user_id)
    bearer = recognise(secret)
    assert (bearer.user_id, bearer.account_id, bearer.token_id) == (user_id, session.account_id, session.id)
    assert bearer.scopes == set(tokens.SCOPES)
    assert sessions.remembered(secret) == bearer
    for _ in range(2):
        with unit_of_work() as work:
            sessions.end(work, session.id, actor=f"user:{user_id}")
    assert sessions.remembered(secret) is None
    assert refused(secret)


def test_an_idle_session_ends(user_id: str, clock: FrozenClock) -> None:
    """Use keeps it alive; unused for its idle time it is over."""
    _, secret = start(user_id)
    for _ in range(3):
        clock.advance(seconds=limits.SESSION_IDLE_SECONDS - 1)
        assert not refused(secret)
    clock.advance(seconds=limits.SESSION_IDLE_SECONDS)
    assert refused(secret)


def test_an_old_session_ends_however_much_it_is_used(user_id: str, clock: FrozenClock) -> None:
    """It lasts for its absolute time, to the second, and no longer."""
    _, secret = start(user_id)
    until = clock.now() + timedelta(seconds=limits.SESSION_SECONDS_MAX)
    while clock.now() < until - timedelta(seconds=1):
        assert not refused(secret)
        clock.advance(seconds=min(3600.0, (until - timedelta(seconds=1) - clock.now()).total_seconds()))
    assert not refused(secret)
    clock.advance(seconds=1)
    assert refused(secret)


def test_use_is_noted_once_a_minute(user_id: str, clock: FrozenClock) -> None:
    """A page that follows a batch does not write each time."""
    session, secret = start(user_id)
    seen = []
    for seconds in (30, 29, 1):
        clock.advance(seconds=seconds)
        recognise(secret)
        with unit_of_work() as work:
            seen.append((work.session.get_one(Session, session.id).seen_at - session.created_at).seconds)
    assert seen == [0, 0, 60]


def test_nothing_stored_opens_anything(user_id: str, database: Engine) -> None:
    """A copy of the database holds no session's secret."""
    _, secret = start(user_id)
    with database.connect() as connection:
        row = connection.execute(text("SELECT s::text FROM sessions s")).scalar_one()
    assert secret not in row
    assert secret[len(sessions.PREFIX) :][:32] not in row
    assert refused(row)


@pytest.mark.parametrize(
    "wrong", ["", "gl_session_", "gl_session_" + "a" * 38, "gl_session_\udcff", "x" * 100_000]
)
def test_whatever_is_wrong_costs_one_look_up(user_id: str, database: Engine, wrong: str) -> None:
    """Unknown and malformed secrets get the same answer after the same one statement."""
    statements: list[str] = []
    event.listen(database, "before_cursor_execute", lambda *call: statements.append(call[2]))
    with unit_of_work() as work, pytest.raises(NotAuthenticated, match="This session has ended, or"):
        sessions.recognise(work, wrong)
    assert len(statements) == 1


def test_a_token_is_no_session_and_a_session_no_token(user_id: str) -> None:
    """Each kind of bearer opens only by its own door, whatever its checksum says."""
    session, secret = start(user_id)
    with unit_of_work() as work:
        _, token = tokens.issue(work, session.account_id, "t")
    assert refused(token)
    with unit_of_work() as work, pytest.raises(NotAuthenticated):
        tokens.recognise(work, secret)


def test_who_leaves_an_account_is_signed_out(user_id: str, owner: Engine) -> None:
    """Without the membership there is no session: the database itself sees to it."""
    _, secret = start(user_id)
    with unit_of_work() as work:
        work.session.execute(delete(Member).where(Member.user_id == user_id))
    assert refused(secret)


def test_a_users_sessions_are_bounded(
    user_id: str, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When all are in use the oldest gives way, and those that are over are deleted."""
    monkeypatch.setattr(limits, "SESSIONS_PER_USER_MAX", 2)
    secrets = []
    for _ in range(3):
        secrets.append(start(user_id)[1])
        clock.advance(seconds=1)
    assert [refused(one) for one in secrets] == [True, False, False]
    clock.advance(seconds=limits.SESSION_SECONDS_MAX)
    start(user_id)
    with unit_of_work() as work:
        assert work.session.scalar(select(func.count()).select_from(Session)) == 1


def test_signing_in_and_out_is_audited_without_the_secret(user_id: str) -> None:
    """The audit names user and session, once each."""
    session, secret = start(user_id)
    for _ in range(2):
        with unit_of_work() as work:
            sessions.end(work, session.id, actor=f"user:{user_id}")
    with unit_of_work() as work:
        rows = work.session.scalars(
            select(Audit).where(Audit.action.like("session.%")).order_by(Audit.sequence)
        ).all()
    assert [(one.action, one.actor, one.details) for one in rows] == [
        (f"session.{what}", f"user:{user_id}", {"session_id": session.id}) for what in ("started", "ended")
    ]
    assert secret not in str(rows)
