"""Sessions: one sign-in of a user to an account, carried by a bearer of its own kind.

A session's secret has the shape of a token under another prefix and is stored the same way. It ends by signing out,
when it was not used for SESSION_IDLE_SECONDS, and SESSION_SECONDS_MAX after it began; an ended one is a row that is
not there. What opened something is remembered for as long as a token is, so an end holds everywhere within 5 seconds.
"""

import hmac
import time
from datetime import timedelta

from sqlalchemy import delete, select, update

from gridline import ids, limits
from gridline.customers import audit, tokens, users
from gridline.customers.memory import Bearer, Memory
from gridline.customers.tables import Account, Session
from gridline.db.work import Work
from gridline.errors import NotAuthenticated

PREFIX = "gl_session_"
SEEN_EVERY = timedelta(minutes=1)

_IDLE = timedelta(seconds=limits.SESSION_IDLE_SECONDS)
_MEMORY = Memory()


def start(work: Work, user_id: str) -> tuple[Session, str]:
    """Sign a user in; the session and its secret, which is shown now and never again.

    The user's sessions that are over are deleted, and the oldest when there are SESSIONS_PER_USER_MAX.
    """
    account = users.account_of(work, user_id)
    _tidy(work, user_id)
    text = tokens.fresh(PREFIX)
    session = Session(
        id=ids.new("session"),
        user_id=user_id,
        account_id=account.id,
        hash=tokens.hashed(text),
        created_at=work.now,
        seen_at=work.now,
        expires_at=work.now + timedelta(seconds=limits.SESSION_SECONDS_MAX),
    )
    work.session.add(session)
    audit.record(
        work,
        account_id=account.id,
        actor=f"user:{user_id}",
        action="session.started",
        details={"session_id": session.id},
    )
    work.session.flush()
    return session, text


def remembered(text: str) -> Bearer | None:
    """The bearer, if this process let that very text in a moment ago; None says nothing about the session."""
    return _MEMORY.get(text)


def recognise(work: Work, text: str) -> Bearer:
    """The bearer of that text, as the database says now; its use is noted, at most once a minute.

    Unknown, malformed and ended cost the same (one hash, one look-up) and get the same answer.

    Raises:
        NotAuthenticated: it opens nothing.
    """
    asked = time.monotonic()
    wanted = tokens.hashed(text)
    row = work.session.execute(
        select(Session, Account.requests_per_minute_max)
        .join(Account, Account.id == Session.account_id)
        .where(Session.hash == wanted)
    ).one_or_none()
    session, requests_per_minute_max = row or (None, 0)
    known = hmac.compare_digest(session.hash if session else "", wanted)
    if session is None or not known or not tokens.well_formed(text, PREFIX) or not _live(work, session):
        raise NotAuthenticated("This session has ended, or there never was one. Sign in again.")
    _touch(work, session)
    bearer = Bearer(
        session.account_id,
        session.id,
        frozenset(tokens.SCOPES),
        requests_per_minute_max,
        user_id=session.user_id,
    )
    ends = min(session.expires_at, session.seen_at + _IDLE) - work.now
    _MEMORY.put(text, bearer, asked + min(tokens.REMEMBERED_SECONDS, ends.total_seconds()))
    return bearer


def end(work: Work, session_id: str, *, actor: str) -> None:
    """Sign out: the session opens nothing from the next request on. Twice is as good as once."""
    ended = work.session.execute(
        delete(Session).where(Session.id == session_id).returning(Session.account_id)
    ).scalar_one_or_none()
    if ended is not None:
        details = {"session_id": session_id}
        audit.record(work, account_id=ended, actor=actor, action="session.ended", details=details)
    _MEMORY.forget(session_id)


def get(work: Work, session_id: str) -> Session:
    """The session as it stands now.

    Raises:
        NotAuthenticated: it has ended meanwhile.
    """
    session = work.session.get(Session, session_id)
    if session is None:
        raise NotAuthenticated("This session has ended. Sign in again.")
    return session


def _live(work: Work, session: Session) -> bool:
    return work.now < session.expires_at and work.now < session.seen_at + _IDLE


def _touch(work: Work, session: Session) -> None:
    """Note the use, at most once a minute: a page that follows a batch must not cost a write each time."""
    if session.seen_at > work.now - SEEN_EVERY:
        return
    work.session.execute(
        update(Session)
        .where(Session.id == session.id, Session.seen_at <= work.now - SEEN_EVERY)
        .values(seen_at=work.now)
    )


def _tidy(work: Work, user_id: str) -> None:
    kept = (
        select(Session.id)
        .where(Session.user_id == user_id, Session.expires_at > work.now, Session.seen_at > work.now - _IDLE)
        .order_by(Session.created_at.desc(), Session.id)
        .limit(limits.SESSIONS_PER_USER_MAX - 1)
    )
    work.session.execute(
        delete(Session)
        .where(Session.user_id == user_id, Session.id.not_in(kept))
        .execution_options(synchronize_session=False)
    )
