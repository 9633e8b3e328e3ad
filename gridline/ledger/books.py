"""The chart of books: an account's available and held credit, and the platform's own.

A positive entry raises a book, a negative one lowers it. Grants come out of ``platform:granted``, corrections out of
``platform:adjusted``, refunds out of revenue; so the platform's books together are what customers still
hold, with the sign turned: everything sums to zero.
"""

from zlib import crc32

PLATFORM_GRANTED = "platform:granted"
"""Where granted credit comes from; its balance is minus everything ever granted."""
PLATFORM_ADJUSTED = "platform:adjusted"
"""What corrections gave (below zero) or took; apart from grants, which are what was paid for or promised."""
REVENUE = "platform:revenue"
PLATFORM_REVENUE = tuple(f"{REVENUE}:{part:02}" for part in range(16))
"""What customers were charged, and what overran their holds, less what was refunded, in parts: all settlements post
to it, and on one book each would wait for the other's commit. Their sum is the revenue."""
PLATFORM_OVERRUN = "platform:overrun"
"""Usage beyond its hold, carried by the platform: not zero means an alarm."""

PLATFORM_BOOKS = (PLATFORM_ADJUSTED, PLATFORM_GRANTED, PLATFORM_OVERRUN, *PLATFORM_REVENUE)


def revenue(batch_id: str) -> str:
    """The part of the revenue that this batch's charge and refunds are posted to."""
    return PLATFORM_REVENUE[crc32(batch_id.encode()) % len(PLATFORM_REVENUE)]


def available(account_id: str) -> str:
    """The book of credit that the account can still spend; the database never lets it fall below zero."""
    return f"{account_id}:available"


def held(account_id: str) -> str:
    """The book of credit set aside for batches that have not ended."""
    return f"{account_id}:held"
