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


def known(work: Work, identity: Identity) -> User | None:
    """The user of an identity; None where it would be a new one.

    An e-mail that has another user is refused, not joined: whoever signed up with a password never showed that the e-mail is theirs,
    so joining would let somebody wait in an account under another's e-mail.

    Raises:
        EmailTaken: there is none, and the e-mail has another user.
    """
    # In this order: a user that is just being made for this very identity is seen twice or by the second look alone.
    namesake = users.find(work, identity.email)
    user = find(work, identity)
    if user is None and namesake is not None:
        raise _taken(namesake)
    return user


def sign_up(work: Work, identity: Identity, *, credits_nanos: int = 0) -> User:
    """The user of an identity, made with an account and without a password if there is none yet.

    Raises:
        EmailTaken: the e-mail has another user.
    """
    # Two sign-ins at once, perhaps with an e-mail that has just changed, go one after another and make one user.
    name = f"identity:{identity.issuer}\n{identity.subject}"
    work.session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})
    there = known(work, identity)
    if there is not None:
        return there
    user = users.sign_up(work, identity.email, None, credits_nanos=credits_nanos)
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


def _taken(namesake: User) -> EmailTaken:
    helps = (
        "It signs in as somebody else at the identity provider. Write to the operator."
        if namesake.password_hash is None
        else "Sign in with that user's password; if you never chose one, write to the operator."
    )
    return EmailTaken(f"There is a user with your e-mail already. {helps}")
