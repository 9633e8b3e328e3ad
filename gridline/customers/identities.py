"""Who signs in with an identity provider: found by issuer and subject, never by an e-mail, which only names a new user."""

from sqlalchemy import select, text

from gridline.customers import audit, users
from gridline.customers.errors import EmailTaken
from gridline.customers.id_tokens import Identity
from gridline.customers.tables import ProviderIdentity, User
from gridline.db.work import Work


def find(work: Work, identity: Identity) -> User | None:
    """The user of an identity, whatever its e-mail is by now."""
    return work.session.execute(
        select(User)
        .join(ProviderIdentity, ProviderIdentity.user_id == User.id)
        .where(ProviderIdentity.issuer == identity.issuer, ProviderIdentity.subject == identity.subject)
    ).scalar_one_or_none()


def refuse_taken(work: Work, identity: Identity) -> None:
    """Refuse an identity whose e-mail has a user already.

    They are not taken for one person: whoever signed up with a password never showed that the e-mail is theirs, so joining the two
    would let somebody wait in an account under another's e-mail.

    Raises:
        EmailTaken: there is one.
    """
    user = users.find(work, identity.email)
    if user is not None:
        raise _taken(has_password=user.password_hash is not None)


def sign_up(work: Work, identity: Identity, *, credits_nanos: int = 0) -> User:
    """The user of an identity, made with an account and without a password if there is none yet.

    Raises:
        EmailTaken: the e-mail has another user.
    """
    # Two sign-ins at once, perhaps with an e-mail that has just changed, go one after another and make one user.
    name = f"identity:{identity.issuer}\n{identity.subject}"
    work.session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})
    known = find(work, identity)
    if known is not None:
        return known
    refuse_taken(work, identity)
    try:
        user = users.sign_up(work, identity.email, None, credits_nanos=credits_nanos)
    except EmailTaken:
        # Since a moment ago, so by another way than this one.
        raise _taken(has_password=True) from None
    work.session.add(
        ProviderIdentity(
            issuer=identity.issuer, subject=identity.subject, user_id=user.id, created_at=work.now
        )
    )
    work.session.flush()
    audit.record(
        work,
        account_id=users.account_of(work, user.id).id,
        actor=f"user:{user.id}",
        action="identity.added",
        details={"user_id": user.id, "issuer": identity.issuer},
    )
    return user


def _taken(*, has_password: bool) -> EmailTaken:
    helps = (
        "Sign in with that password; if you never chose one, write to the operator."
        if has_password
        else "It signs in as somebody else at the identity provider. Write to the operator."
    )
    return EmailTaken(f"There is a user with your e-mail already. {helps}")
