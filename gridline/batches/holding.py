"""Task body ``hold_credits``: sets aside the most the batch can cost, once, with a copy of its rates."""

from typing import Literal

from gridline.batches import events, moves, waits
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import Status
from gridline.batches.tables import Batch
from gridline.customers import spending
from gridline.db.work import Work, unit_of_work
from gridline.errors import InvariantBroken, LimitExceeded, Refused
from gridline.ledger import holding
from gridline.ledger.errors import InsufficientCredit
from gridline.ledger.tables import Hold
from gridline.money import credits_text

Held = Literal["held", "parked", "ended"]


def hold_credits(batch_id: str) -> Held:
    """Place the batch's hold, within credit, the account's daily limit and its budget.

    Credit that falls short ends a 24h batch and parks a 72h one until a top-up. A hold over the daily limit, or
    over the budget, ends the batch in both windows.
    """
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        if batch.status not in (Status.VALIDATING, Status.IN_PROGRESS) or batch.validated_at is None:
            return "ended"
        if work.session.get(Hold, batch.id) is not None:
            return "held"
        if moves.stays_parked(work, batch):
            return "parked"
        try:
            _place(work, batch)
        except InsufficientCredit as short:
            return _short(work, batch, short)
        except LimitExceeded as over:
            return _fail(work, batch, over)
        return "held"


def _place(work: Work, batch: Batch) -> None:
    if batch.ceiling_nanos is None or batch.card is None:
        raise InvariantBroken(f"Batch {batch.id} is validated but has no ceiling.")
    with work.session.begin_nested():
        holding.place(
            work,
            batch_id=batch.id,
            account_id=batch.account_id,
            amount_nanos=batch.ceiling_nanos,
            card=batch.card,
        )
        if batch.ceiling_nanos:
            spending.check_hold(work, batch.account_id, batch_id=batch.id, hold_nanos=batch.ceiling_nanos)
    batch.waiting = None
    events.record(work, batch, "held", amount=credits_text(batch.ceiling_nanos))
    work.notify("capacity")


def _short(work: Work, batch: Batch, short: InsufficientCredit) -> Held:
    if batch.completion_window == "72h":
        waits.set_reason(work, batch, ReasonCode.CUSTOMER_CREDIT)
        moves.park(work, batch)
        return "parked"
    return _fail(work, batch, short)


def _fail(work: Work, batch: Batch, refusal: Refused) -> Held:
    batch.errors = [{"code": refusal.code, "message": refusal.message, "param": None, "line": None}]
    batch.errors_total = 1
    batch.error_code = refusal.code
    moves.move(work, batch, Status.FAILED, error_code=refusal.code)
    return "ended"
