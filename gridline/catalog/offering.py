"""What the lines of an account's file are held to on this platform: its models, its adapters, its dialect."""

from gridline.catalog import adapters, cards
from gridline.db.work import Work
from gridline.lines.rules import Rules
from gridline.profiles.profile import current


def rules(work: Work, account_id: str, endpoint: str) -> Rules:
    """The rules for a file of this account whose lines go to this endpoint."""
    return Rules(
        endpoint,
        cards={card.id: card for card in cards.listed(work)},
        offer=adapters.offer(work, account_id),
        storing_fails=current().storing_fails,
    )
