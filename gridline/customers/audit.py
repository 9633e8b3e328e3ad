"""The audit: who did what to an account, appended in the transaction that did it."""

from typing import Any

from gridline import limits
from gridline.customers.tables import Audit
from gridline.db.work import Work
from gridline.errors import InvalidRequest


def reason(text: str) -> str:
    """Why, in the operator's words, on one line.

    Raises:
        InvalidRequest: none was given, or it is too long or holds control characters.
    """
    said = " ".join(text.split())
    if not said:
        raise InvalidRequest("Say why: the reason is kept with the change.", param="why")
    if len(said) > limits.OPERATOR_NOTE_CHARS_MAX or not said.isprintable():
        raise InvalidRequest(
            f"A reason has 1 to {limits.OPERATOR_NOTE_CHARS_MAX} printable characters, got {len(said)} characters.",
            param="why",
        )
    return said


def record(work: Work, *, account_id: str | None, actor: str, action: str, details: dict[str, Any]) -> None:
    """Append one row. ``actor`` is ``token:<id>``, ``user:<id>``, ``operator:<name>`` or ``keeper``.

    Details hold ids and figures, never a token's text, a prompt or a result.
    """
    row = Audit(account_id=account_id, at=work.now, actor=actor, action=action, details=details)
    work.session.add(row)
