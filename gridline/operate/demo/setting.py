"""What the operator does for the demo: qualify the models, open an account with credits and a token. Idempotent."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import select

from gridline.catalog import cards
from gridline.customers import accounts, tokens
from gridline.customers.tables import Token
from gridline.db.work import unit_of_work
from gridline.errors import Unavailable
from gridline.ledger import posting
from gridline.money import NANOS_PER_CREDIT
from gridline.operate.accounts import operator
from gridline.operate.qualifying import qualify
from gridline.settings import Settings

ACCOUNT = "demo"
CREDITS_NANOS = 10 * NANOS_PER_CREDIT


@dataclass(frozen=True)
class Customer:
    """The demo's account and its token."""

    account_id: str
    token: str


def qualify_unless_listed(config: Settings, model_id: str, say: Callable[[str], None]) -> None:
    """Qualify a model once; an earlier demo's run counts.

    Raises:
        Unavailable: the model did not pass.
    """
    with unit_of_work() as work:
        listed = cards.qualified_card(work, model_id) is not None
    if listed:
        say(f"  {model_id} is qualified from an earlier run")
        return
    outcome = qualify(config, model_id)
    if not outcome.passed:
        raise Unavailable(f"{model_id} did not qualify: {outcome.details}")
    say(f"  {model_id} passed, {outcome.tokens_per_second} tokens a second")


def open_demo_account() -> Customer:
    """The account ``demo`` with ten credits, given once, and a fresh token in place of the last run's."""
    actor = operator()
    with unit_of_work() as work:
        account = accounts.find(work, ACCOUNT) or accounts.open_account(work, ACCOUNT, actor=actor)
        posting.grant(work, account.id, CREDITS_NANOS, actor=actor, why="credits to try with", key=ACCOUNT)
        old = select(Token.id).where(
            Token.account_id == account.id, Token.name == ACCOUNT, Token.revoked_at.is_(None)
        )
        for token_id in work.session.scalars(old).all():
            tokens.revoke(work, account.id, token_id, actor=actor)
        _, text = tokens.issue(work, account.id, ACCOUNT, actor=actor)
    return Customer(account.id, text)
