"""The audit: who did what to an account, appended in the transaction that did it."""

from typing import Any

from gridline.customers.tables import Audit
from gridline.db.work import Work


def record(work: Work, *, account_id: str | None, actor: str, action: str, details: dict[str, Any]) -> None:
    """Append one row. ``actor`` is ``token:<id>``, ``user:<id>``, ``operator:<name>`` or ``keeper``.

    Details hold ids and figures, never a token's text, a prompt or a result.
    """
    row = Audit(account_id=account_id, at=work.now, actor=actor, action=action, details=details)
    work.session.add(row)
