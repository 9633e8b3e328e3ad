"""Grants, adjustments and refunds by an operator: each posts its entries and its row in the audit, once per key."""

from sqlalchemy import exists, select

from gridline.customers import audit
from gridline.customers.tables import Audit
from gridline.db.work import Work
from gridline.ledger import correcting, posting
from gridline.ledger.tables import Transaction
from gridline.money import credits_text


def grant(work: Work, account_id: str, amount_nanos: int, *, actor: str, why: str, key: str) -> bool:
    """Give an account credit. False when this key gave it before: nothing is new.

    Raises:
        InvalidRequest: the amount is not above zero.
        KeyReused: the key was used before for another amount.
    """
    made = posting.grant(work, account_id, amount_nanos, actor=actor, why=why, key=key)
    return _audited(work, made, amount_nanos)


def adjust(work: Work, account_id: str, amount_nanos: int, *, actor: str, why: str, key: str) -> bool:
    """Add to an account's available credit, or take from it. False when this key did so before.

    Raises:
        InvalidRequest: the amount is zero.
        InsufficientCredit: less is available than is to be taken.
        KeyReused: the key was used before for another amount.
    """
    made = correcting.adjust(work, account_id, amount_nanos, actor=actor, why=why, key=key)
    return _audited(work, made, amount_nanos)


def refund(work: Work, batch_id: str, amount_nanos: int, *, actor: str, why: str, key: str) -> bool:
    """Give back of what a batch was charged. False when this key did so before.

    Raises:
        InvalidRequest: the amount is not above zero.
        NotFound: the batch has no charge.
        RefundTooLarge: more than what is left of the charge.
        KeyReused: the key was used before for another amount or batch.
    """
    made = correcting.refund(work, batch_id, amount_nanos, actor=actor, why=why, key=key)
    return _audited(work, made, amount_nanos)


def _audited(work: Work, transaction_id: str, amount_nanos: int) -> bool:
    """Record the transaction; False when it is recorded. Whoever posts the same id waits for the one before it."""
    made = work.session.get_one(Transaction, transaction_id)
    action = f"account.{made.kind}"
    known = exists().where(
        Audit.account_id == made.account_id,
        Audit.action == action,
        Audit.details.contains({"transaction_id": transaction_id}),
    )
    if work.session.scalar(select(known)):
        return False
    details = {"transaction_id": transaction_id, "credits": credits_text(amount_nanos), "why": made.why}
    if made.batch_id is not None:
        details["batch_id"] = made.batch_id
    audit.record(work, account_id=made.account_id, actor=made.actor, action=action, details=details)
    return True
