"""The owner's monthly budget of an account: set and taken away by its users, never by a token or an operator."""

from gridline.customers import accounts, audit
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.money import credits_text


def set_budget(work: Work, account_id: str, nanos: int | None, *, actor: str) -> Account:
    """Let the account's batches hold so much a UTC month; None: no budget. Set to what it is already, nothing happens.

    It counts from the next create and the next hold; batches that hold credit already go on.
    """
    account = accounts.get(work, account_id)
    if account.monthly_budget_nanos != nanos:
        account.monthly_budget_nanos = nanos
        shown = None if nanos is None else credits_text(nanos)
        audit.record(
            work, account_id=account_id, actor=actor, action="budget.set", details={"monthly_budget": shown}
        )
        work.session.flush()
    return account
