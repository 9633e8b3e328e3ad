"""What the books refuse.

GridlineError
├── Refused
│   ├── InsufficientCredit    429 insufficient_quota: available credit does not cover the amount
│   └── Conflict
│       └── KeyReused         409: the same key was posted before with another amount
└── InvariantBroken
    └── BookMissing           a posting names a book that was never opened
"""

from gridline.errors import Conflict, InvariantBroken, Refused
from gridline.money import credits_text


class InsufficientCredit(Refused):
    """Raised when available credit does not cover an amount; nothing was posted."""

    status = 429
    type = "insufficient_quota"
    default_code = "insufficient_quota"

    def __init__(self, *, available_nanos: int, needed_nanos: int) -> None:
        super().__init__(
            f"{credits_text(needed_nanos)} credits are needed, {credits_text(available_nanos)} are available. "
            "Add credit, or send a smaller batch or a lower max_tokens.",
            limit={"available": credits_text(available_nanos), "needed": credits_text(needed_nanos)},
        )
        self.available_nanos = available_nanos
        self.needed_nanos = needed_nanos


class KeyReused(Conflict):
    """Raised when a key that was posted before comes back with another amount."""

    default_code = "key_reused"


class WouldOverdraw(InvariantBroken):
    """Raised by a posting that would take a customer's book below zero; callers turn it into a refusal."""


class BookMissing(InvariantBroken):
    """Raised when a posting names a book that was never opened: open the account's books first."""
