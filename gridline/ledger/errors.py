"""What the books refuse.

GridlineError
├── Refused
│   ├── InsufficientCredit    429 insufficient_quota: available credit does not cover the amount
│   ├── InvalidRequest
│   │   └── RefundTooLarge    400: more than what is left of the batch's charge
│   └── Conflict
│       └── KeyReused         409: the same key was posted before with another amount
└── InvariantBroken
    └── BookMissing           a posting names a book that was never opened
"""

from gridline.errors import Conflict, InvalidRequest, InvariantBroken, Refused
from gridline.money import credits_text

_FOR_CUSTOMERS = "Add credit, or send a smaller batch or a lower max_tokens."


class InsufficientCredit(Refused):
    """Raised when available credit does not cover an amount; nothing was posted."""

    status = 429
    type = "insufficient_quota"
    default_code = "insufficient_quota"

    def __init__(self, *, available_nanos: int, needed_nanos: int, advice: str = _FOR_CUSTOMERS) -> None:
        super().__init__(
            f"{credits_text(needed_nanos)} credits are needed, {credits_text(available_nanos)} are available. {advice}",
            limit={"available": credits_text(available_nanos), "needed": credits_text(needed_nanos)},
        )
        self.available_nanos = available_nanos
        self.needed_nanos = needed_nanos


class RefundTooLarge(InvalidRequest):
    """Raised when a refund is more than what is left of a batch's charge; nothing was posted."""

    default_code = "refund_too_large"


class KeyReused(Conflict):
    """Raised when a key that was posted before comes back with another amount, or for another batch."""

    default_code = "key_reused"


class WouldOverdraw(InvariantBroken):
    """Raised by a posting that would take a customer's book below zero; callers turn it into a refusal."""


class BookMissing(InvariantBroken):
    """Raised when a posting names a book that was never opened: open the account's books first."""
