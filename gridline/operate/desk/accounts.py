"""Accounts as operators read and change them: a list to search, one with all that belongs to it, its limits."""

from dataclasses import dataclass

from sqlalchemy import func, or_, select
from sqlalchemy.orm import aliased

from gridline.customers import accounts, spending
from gridline.customers.tables import Account, Audit
from gridline.db.work import Work
from gridline.errors import Conflict, NotFound
from gridline.ids import is_id
from gridline.ledger import entries, reading
from gridline.ledger.books import available, held
from gridline.ledger.entries import Movement
from gridline.ledger.reading import Balances
from gridline.ledger.tables import Balance
from gridline.operate.accounts import Limits, set_limits
from gridline.operate.desk import audit

PAGE = 50
LAST = 20
"""Entries, and rows of the audit, that an account's page shows."""


@dataclass(frozen=True)
class Row:
    """An account in the list; amounts in nano-credits."""

    id: str
    name: str
    open_batches: int
    open_batches_max: int
    available_nanos: int
    held_nanos: int


@dataclass(frozen=True)
class Shown:
    """One account's page."""

    account: Account
    balance: Balances
    today: spending.Spending
    movements: list[Movement]
    audit: list[tuple[Audit, str | None]]

    @property
    def seen(self) -> Limits:
        """The limits as the page shows them: a change made from there is a change of these."""
        return limits_of(self.account)


def page(
    work: Work, *, search: str = "", after: str | None = None, limit: int = PAGE
) -> tuple[list[Row], str | None]:
    """Accounts by name from after that name, with ``search`` in the name or as the id; and what to go on after."""
    free, set_aside = aliased(Balance), aliased(Balance)
    statement = (
        select(
            Account.id,
            Account.name,
            Account.open_batches,
            Account.open_batches_max,
            func.coalesce(free.balance_nanos, 0),
            func.coalesce(set_aside.balance_nanos, 0),
        )
        .outerjoin(free, free.book == Account.id + available(""))
        .outerjoin(set_aside, set_aside.book == Account.id + held(""))
    )
    if search:
        statement = statement.where(
            or_(Account.name.icontains(search, autoescape=True), Account.id == search)
        )
    if after is not None:
        statement = statement.where(Account.name > after)
    found = [Row(*row) for row in work.session.execute(statement.order_by(Account.name).limit(limit + 1))]
    return found[:limit], found[limit - 1].name if len(found) > limit else None


def show(work: Work, account_id: str) -> Shown:
    """One account with its balance, today's use, last entries and last changes.

    Raises:
        NotFound: no such account.
    """
    account = known(work, account_id)
    movements, _ = entries.page(work, account_id=account_id, after=None, limit=LAST)
    changes, _ = audit.page(work, account_id=account_id, limit=LAST)
    return Shown(
        account=account,
        balance=reading.balance(work, account_id),
        today=spending.today(work, account),
        movements=movements,
        audit=changes,
    )


def limits_of(account: Account) -> Limits:
    """The account's limits as they stand."""
    return Limits(
        open_batches=account.open_batches_max,
        leases=account.leases_max,
        daily_credits_nanos=account.daily_credits_nanos_max,
        requests_per_minute=account.requests_per_minute_max,
    )


def change_limits(work: Work, account_id: str, wanted: Limits, *, seen: Limits, actor: str, why: str) -> bool:
    """Set the limits that differ from those that the operator saw. False when they stand so already: a second click.

    Raises:
        NotFound: no such account.
        Conflict: somebody has changed them since the operator saw them.
        InvalidRequest: a limit below zero.
    """
    known(work, account_id)
    work.session.execute(select(Account.id).where(Account.id == account_id).with_for_update())
    now = limits_of(accounts.get(work, account_id))
    if wanted == now:
        return False
    if seen != now:
        raise Conflict(
            "The limits were changed since you opened this page, and nothing was changed now. "
            "Look at the new ones above, then say again what they should be."
        )
    changed = {name: value for name, value in vars(wanted).items() if value != getattr(now, name)}
    set_limits(work, account_id, Limits(**changed), actor=actor, why=why)
    return True


def known(work: Work, account_id: str) -> Account:
    """The account of this id.

    Raises:
        NotFound: no such account.
    """
    # Text that is no id never reaches the database: it could hold what a database text cannot.
    if not is_id("account", account_id):
        raise NotFound(f"There is no account {account_id!r}.")
    return accounts.get(work, account_id)
