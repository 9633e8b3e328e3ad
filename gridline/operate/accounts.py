"""What an operator on the host does to accounts: found by id or name, every change with actor in the audit."""

import os
import pwd
from dataclasses import dataclass

from sqlalchemy import update

from gridline.customers import accounts, audit
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import InvalidRequest, NotFound
from gridline.ids import is_id


def operator() -> str:
    """The actor of whoever runs this command on the host."""
    return f"operator:{pwd.getpwuid(os.getuid()).pw_name}"


def by_name_or_id(work: Work, text: str) -> Account:
    """The account with this id or this name.

    Raises:
        NotFound: neither is known.
    """
    if is_id("account", text):
        return accounts.get(work, text)
    found = accounts.find(work, text)
    if found is None:
        raise NotFound(f"There is no account {text!r}. Open it: gridline ops account {text}")
    return found


@dataclass(frozen=True)
class Limits:
    """New limits of an account; None leaves one as it is."""

    open_batches: int | None = None
    leases: int | None = None
    daily_credits_nanos: int | None = None
    requests_per_minute: int | None = None


def set_limits(work: Work, account_id: str, limits: Limits, *, actor: str, why: str) -> dict[str, int]:
    """Change an account's limits; returns what was changed. What waits for capacity or credit is looked at again.

    Raises:
        InvalidRequest: nothing to change, or a limit below zero.
    """
    given = {
        "open_batches_max": limits.open_batches,
        "leases_max": limits.leases,
        "daily_credits_nanos_max": limits.daily_credits_nanos,
        "requests_per_minute_max": limits.requests_per_minute,
    }
    changed = {name: value for name, value in given.items() if value is not None}
    if not changed:
        raise InvalidRequest("Say which limit to change.")
    if any(value < 0 for value in changed.values()):
        raise InvalidRequest("A limit is 0 or more.")
    work.session.execute(update(Account).where(Account.id == account_id).values(**changed))
    details = {**changed, "why": why}
    audit.record(work, account_id=account_id, actor=actor, action="account.limits", details=details)
    work.notify("capacity")
    work.notify("credits")
    return changed
