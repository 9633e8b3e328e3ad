"""The audit as operators read it: newest first, a page at a time."""

from sqlalchemy import select

from gridline.customers.tables import Account, Audit
from gridline.db.work import Work

PAGE = 50


def page(
    work: Work, *, account_id: str | None = None, before: int | None = None, limit: int = PAGE
) -> tuple[list[tuple[Audit, str | None]], int | None]:
    """Rows with their account's name, newest first, older than the sequence ``before``; and what to go on before.

    The second is None on the last page.
    """
    statement = select(Audit, Account.name).outerjoin(Account, Account.id == Audit.account_id)
    if account_id is not None:
        statement = statement.where(Audit.account_id == account_id)
    if before is not None:
        statement = statement.where(Audit.sequence < before)
    found = work.session.execute(statement.order_by(Audit.sequence.desc()).limit(limit + 1)).all()
    rows: list[tuple[Audit, str | None]] = [(row[0], row[1]) for row in found[:limit]]
    return rows, rows[-1][0].sequence if len(found) > limit else None
