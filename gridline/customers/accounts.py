"""Accounts: opening one, and the slots that its open batches take. Knows no batch."""

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert

from gridline import ids, limits
from gridline.customers import audit
from gridline.customers.errors import AccountNameTaken
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import InvariantBroken, LimitExceeded, NotFound
from gridline.ledger import posting


def open_account(work: Work, name: str, *, actor: str = "operator") -> Account:
    """Open an account with its books and the limits of a new customer.

    Raises:
        AccountNameTaken: the name is in use.
    """
    account_id = ids.new("account")
    made = work.session.execute(
        insert(Account)
        .values(
            id=account_id,
            name=name,
            created_at=work.now,
            open_batches=0,
            open_batches_max=limits.OPEN_BATCHES_DEFAULT,
            leases_max=limits.ACCOUNT_LEASES_DEFAULT,
            daily_credits_nanos_max=limits.DAILY_CREDITS_NANOS_DEFAULT,
            requests_per_minute_max=limits.REQUESTS_PER_MINUTE_DEFAULT,
            datacenter_only=False,
            retention_days=limits.RETENTION_DAYS_DEFAULT,
            files_count=0,
            files_bytes=0,
        )
        .on_conflict_do_nothing(index_elements=[Account.name])
        .returning(Account.id)
    ).one_or_none()
    if made is None:
        raise AccountNameTaken(
            f"There is an account named {name!r} already. Choose another name.", param="name"
        )
    posting.open_books(work, account_id)
    audit.record(work, account_id=account_id, actor=actor, action="account.opened", details={"name": name})
    return get(work, account_id)


def get(work: Work, account_id: str) -> Account:
    """The account as it stands now.

    Raises:
        NotFound: no such account.
    """
    statement = select(Account).where(Account.id == account_id).execution_options(populate_existing=True)
    account = work.session.execute(statement).scalar_one_or_none()
    if account is None:
        raise NotFound(f"There is no account {account_id!r}.")
    return account


def find(work: Work, name: str) -> Account | None:
    """The account of that name, if any."""
    return work.session.execute(select(Account).where(Account.name == name)).scalar_one_or_none()


def slot_take(work: Work, account_id: str) -> None:
    """Take one of the account's slots for open batches; given back in the transaction that ends the batch.

    The row stays locked until this transaction ends, so creates of one account go one after another.

    Raises:
        LimitExceeded: all are taken; its ``limit`` holds the effective limit and the current use.
    """
    taken = work.session.execute(
        update(Account)
        .where(Account.id == account_id, Account.open_batches < Account.open_batches_max)
        .values(open_batches=Account.open_batches + 1)
        .returning(Account.open_batches)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    if taken is not None:
        return
    account = get(work, account_id)
    raise LimitExceeded(
        f"Your account has {account.open_batches} of {account.open_batches_max} open batches. Wait for one to end "
        "(or cancel one), then create this one again; no batch was made and nothing is held. "
        "To ask for a higher limit, write to the operator with a batch id.",
        limit={"name": "open_batches", "limit": account.open_batches_max, "current": account.open_batches},
    )


def slot_give(work: Work, account_id: str) -> None:
    """Give one slot back.

    Raises:
        InvariantBroken: none was taken.
    """
    given = work.session.execute(
        update(Account)
        .where(Account.id == account_id, Account.open_batches > 0)
        .values(open_batches=Account.open_batches - 1)
        .returning(Account.open_batches)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    if given is None:
        raise InvariantBroken(f"Account {account_id} gave back a slot for an open batch that it never took.")
