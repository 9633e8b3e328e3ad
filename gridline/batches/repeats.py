"""Creates that are sent again: which batch the first of them made, found by key or by what an SDK's retry shows.

A repeated create waits for the one before it, whatever process serves it, and is answered before any limit is
looked at: the batch that took the last open slot answers its own retry.
"""

import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from hashlib import sha256

from sqlalchemy import delete, select, text, tuple_
from sqlalchemy.dialects.postgresql import insert

from gridline import limits
from gridline.batches.requests import CreateRequest
from gridline.batches.tables import Batch, IdempotencyKey, RecentCreate
from gridline.db.work import Work
from gridline.errors import Conflict

RECENT_KEEP_MINUTES = 60
KEY_KEEP_HOURS = 48
FORGET_ROWS_MAX = 5_000
"""Rows deleted in one transaction, so that a pass over many holds up no create for long."""


@dataclass(frozen=True)
class Sent:
    """How a create arrived, as far as a repetition of it can be told by it."""

    key: str | None = None
    """Its ``Idempotency-Key``; with one, nothing below counts."""
    token_id: str = ""
    user_agent: str = ""
    retry: bool = False
    """The SDK says that it sent this create before."""


def find(work: Work, *, account_id: str, request: CreateRequest, sent: Sent) -> Batch | None:
    """The batch that this very create made before; None when a new one is due.

    From here to the end of the transaction no other create of the same key, or of the same look, goes on.

    Raises:
        Conflict: the key was used with another body.
    """
    if sent.key is not None:
        return _of_key(work, account_id, sent.key, request)
    fingerprint = _fingerprint(request, sent)
    _wait_for_twins(work, f"create:{account_id}:{fingerprint}")
    if not sent.retry:
        # Two equal creates that are both first attempts are two batches: somebody wants the work done twice.
        return None
    known = work.session.get(RecentCreate, (account_id, fingerprint))
    if known is None or known.created_at <= work.now - timedelta(minutes=limits.RETRY_WINDOW_MINUTES):
        return None
    return work.session.get_one(Batch, known.batch_id)


def remember(work: Work, batch: Batch, *, request: CreateRequest, sent: Sent) -> None:
    """Note what a repetition of the create that made this batch will show. Call ``find`` first, for its lock."""
    if sent.key is not None:
        rows = insert(IdempotencyKey).values(
            account_id=batch.account_id,
            key=sent.key,
            body_sha256=_digest(asdict(request)),
            batch_id=batch.id,
            created_at=work.now,
        )
        latest = {name: rows.excluded[name] for name in ("body_sha256", "batch_id", "created_at")}
        work.session.execute(rows.on_conflict_do_update(index_elements=["account_id", "key"], set_=latest))
        return
    rows = insert(RecentCreate).values(
        account_id=batch.account_id,
        fingerprint=_fingerprint(request, sent),
        batch_id=batch.id,
        created_at=work.now,
    )
    latest = {name: rows.excluded[name] for name in ("batch_id", "created_at")}
    work.session.execute(
        rows.on_conflict_do_update(index_elements=["account_id", "fingerprint"], set_=latest)
    )


def forget(work: Work) -> int:
    """Delete some of the rows that no repetition is held against any more; how many. 0: none is left."""
    tables = (
        (RecentCreate, RecentCreate.fingerprint, timedelta(minutes=RECENT_KEEP_MINUTES)),
        (IdempotencyKey, IdempotencyKey.key, timedelta(hours=KEY_KEEP_HOURS)),
    )
    gone = 0
    for rows, name, keep in tables:
        old = rows.created_at < work.now - keep
        some = select(rows.account_id, name).where(old).order_by(rows.created_at).limit(FORGET_ROWS_MAX)
        # Asked twice: a create may have made a row new between the look and the delete.
        statement = delete(rows).where(tuple_(rows.account_id, name).in_(some), old)
        gone += len(work.session.execute(statement.returning(rows.account_id)).all())
    return gone


def _of_key(work: Work, account_id: str, key: str, request: CreateRequest) -> Batch | None:
    _wait_for_twins(work, f"idempotency:{account_id}:{key}")
    known = work.session.get(IdempotencyKey, (account_id, key))
    if known is None or known.created_at < work.now - timedelta(hours=limits.IDEMPOTENCY_HOURS):
        return None
    if known.body_sha256 != _digest(asdict(request)):
        raise Conflict(
            f"Idempotency-Key {key!r} was already used with another body less than {limits.IDEMPOTENCY_HOURS} hours "
            "ago. Send a new key for a new batch.",
            code="idempotency_conflict",
            param="Idempotency-Key",
        )
    return work.session.get_one(Batch, known.batch_id)


def _wait_for_twins(work: Work, name: str) -> None:
    """Of creates with one name one goes on at a time, and the next one finds what it wrote."""
    work.session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})


def _fingerprint(request: CreateRequest, sent: Sent) -> str:
    return _digest([sent.token_id, sent.user_agent, asdict(request)])


def _digest(value: object) -> str:
    """Of what was understood, not of the bytes that came: order of keys and blanks do not matter."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
