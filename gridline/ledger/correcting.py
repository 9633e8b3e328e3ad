"""Corrections by an operator: adjusting an account's credit, refunding a batch's charge. Each once per key."""

from gridline import ids
from gridline.db.work import Work
from gridline.errors import InvalidRequest, NotFound
from gridline.ledger.books import PLATFORM_ADJUSTED, available, revenue
from gridline.ledger.errors import InsufficientCredit, RefundTooLarge, WouldOverdraw
from gridline.ledger.posting import Leg, Posting, open_platform_books, post_under_key
from gridline.ledger.reading import balance, refunded
from gridline.ledger.tables import Resolution
from gridline.money import credits_text


def adjust(work: Work, account_id: str, amount_nanos: int, *, actor: str, why: str, key: str) -> str:
    """Add to an account's available credit, or take from it; returns the transaction's id.

    The other side is ``platform:adjusted`` and not the book of grants: that one stays what was paid for or promised,
    so it can be held against invoices, and one number tells what corrections came to.

    Raises:
        InvalidRequest: the amount is zero.
        InsufficientCredit: less is available than is to be taken; nothing was posted.
        KeyReused: the key was used before for another amount.
    """
    if amount_nanos == 0:
        raise InvalidRequest("An adjustment is above or below 0 nano-credits, got 0.", param="amount")
    open_platform_books(work)  # a platform that is older than this book lacks it
    posting = Posting(
        id=ids.derived("transaction", "adjust", account_id, key),
        account_id=account_id,
        kind="adjust",
        legs=(Leg(PLATFORM_ADJUSTED, -amount_nanos), Leg(available(account_id), amount_nanos)),
        actor=actor,
        why=why,
    )
    try:
        post_under_key(work, posting, key=key)
    except WouldOverdraw:
        raise InsufficientCredit(
            available_nanos=balance(work, account_id).available_nanos,
            needed_nanos=-amount_nanos,
            advice="Take less, or wait until open batches return what they hold.",
        ) from None
    return posting.id


def refund(work: Work, batch_id: str, amount_nanos: int, *, actor: str, why: str, key: str) -> str:
    """Give back of what a batch was charged, to its account; returns the transaction's id.

    All refunds of a batch together are at most its charge, whatever comes at once.

    Raises:
        InvalidRequest: the amount is not above zero.
        NotFound: the batch has no charge: it is unknown, has not ended, or never held credit.
        RefundTooLarge: more than what is left of the charge; nothing was posted.
        KeyReused: the key was used before for another amount or batch.
    """
    if amount_nanos <= 0:
        raise InvalidRequest(f"A refund is above 0 nano-credits, got {amount_nanos}.", param="amount")
    charge = work.session.get(Resolution, batch_id)
    if charge is None:
        raise NotFound(
            f"Batch {batch_id} was not charged: it is unknown, has not ended, or never held credit. Check the id.",
            param="batch_id",
        )
    posting = Posting(
        id=ids.derived("transaction", "refund", charge.account_id, key),
        account_id=charge.account_id,
        kind="refund",
        legs=(Leg(revenue(batch_id), -amount_nanos), Leg(available(charge.account_id), amount_nanos)),
        actor=actor,
        why=why,
        batch_id=batch_id,
    )
    with work.session.begin_nested():
        # Looked at after posting: the entry has locked the account's book, so refunds go one after another.
        if post_under_key(work, posting, key=key) and refunded(work, batch_id) > charge.charged_nanos:
            before = refunded(work, batch_id) - amount_nanos
            raise RefundTooLarge(
                f"Batch {batch_id} was charged {credits_text(charge.charged_nanos)} credits and "
                f"{credits_text(before)} of them were refunded before: at most "
                f"{credits_text(charge.charged_nanos - before)} can be refunded, not {credits_text(amount_nanos)}.",
                param="amount",
            )
    return posting.id
