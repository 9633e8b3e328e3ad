"""Users: people with an e-mail and mostly a password, and the account that signing up opens for one."""

import re
import unicodedata

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert

from gridline import ids, limits
from gridline.customers import accounts, audit
from gridline.customers.errors import AccountNameTaken, EmailTaken
from gridline.customers.tables import Account, Member, Session, User
from gridline.db.work import Work
from gridline.errors import InvalidRequest, NotFound
from gridline.fields import bounded, text_of
from gridline.ledger import posting

OWNER = "owner"
"""The role of who signed up: may do everything in the account."""

_EMAIL = re.compile(r"[^\s@\x00-\x1f\x7f\ud800-\udfff]{1,64}@[^\s@\x00-\x1f\x7f\ud800-\udfff]+\.[^\s@.]+")


def normal_email(value: object, param: str = "email") -> str:
    """The e-mail in its one form: NFKC, small letters, nothing around it.

    Raises:
        InvalidRequest: no text, too long, or no address.
    """
    given = bounded(text_of(value, param), limits.EMAIL_CHARS_MAX, param)
    text = unicodedata.normalize("NFKC", given).strip().lower()
    bounded(text, limits.EMAIL_CHARS_MAX, param)
    if not _EMAIL.fullmatch(text):
        raise InvalidRequest(
            f"Invalid '{param}': this is no e-mail address. Write it as name@example.com.",
            code="invalid_value",
            param=param,
        )
    return text


def find(work: Work, email: str) -> User | None:
    """The user of an e-mail in its normal form, if any."""
    return work.session.execute(select(User).where(User.email == email)).scalar_one_or_none()


def sign_up(work: Work, email: str, password_hash: str | None, *, credits_nanos: int = 0) -> User:
    """Make a user, an account with the limits of a new customer, and the user its owner.

    The account gets ``credits_nanos``, once. Its name is the e-mail. Without a hash no password signs in.

    Raises:
        EmailTaken: the e-mail has a user, perhaps since a moment ago.
    """
    made = work.session.execute(
        insert(User)
        .values(id=ids.new("user"), email=email, password_hash=password_hash, created_at=work.now)
        .on_conflict_do_nothing(index_elements=[User.email])
        .returning(User)
    ).scalar_one_or_none()
    if made is None:
        raise EmailTaken(
            "There is a user with this e-mail already, and the password is not theirs. Sign in instead, or sign up "
            "with another e-mail.",
            param="email",
        )
    actor = f"user:{made.id}"
    account = _opened(work, made, actor)
    work.session.add(Member(user_id=made.id, account_id=account.id, role=OWNER))
    work.session.flush()
    if credits_nanos:
        posting.grant(work, account.id, credits_nanos, actor="platform", why="Welcome.", key="sign-up")
    audit.record(
        work, account_id=account.id, actor=actor, action="user.signed_up", details={"user_id": made.id}
    )
    return made


def account_of(work: Work, user_id: str) -> Account:
    """The account that the user signs in to: the oldest of those that the user is a member of."""
    return work.session.execute(
        select(Account)
        .join(Member, Member.account_id == Account.id)
        .where(Member.user_id == user_id)
        .order_by(Account.created_at, Account.id)
        .limit(1)
    ).scalar_one()


def rehash(work: Work, user_id: str, password_hash: str) -> None:
    """Store the same password's hash with today's parameters."""
    work.session.execute(update(User).where(User.id == user_id).values(password_hash=password_hash))


def reset(work: Work, email: str, password_hash: str, *, actor: str) -> User:
    """Give a user another password and end all of the user's sessions; tokens go on.

    Raises:
        NotFound: nobody has this e-mail.
    """
    user = find(work, email)
    if user is None:
        raise NotFound(f"There is no user with the e-mail {email!r}.", param="email")
    rehash(work, user.id, password_hash)
    work.session.execute(delete(Session).where(Session.user_id == user.id))
    audit.record(
        work,
        account_id=account_of(work, user.id).id,
        actor=actor,
        action="user.password_reset",
        details={"user_id": user.id},
    )
    return user


def _opened(work: Work, user: User, actor: str) -> Account:
    try:
        return accounts.open_account(work, user.email, actor=actor)
    except AccountNameTaken:
        # An operator named an account so. It stays the operator's: nobody gets into it by choosing an e-mail.
        return accounts.open_account(work, f"{user.email} ({user.id})", actor=actor)
