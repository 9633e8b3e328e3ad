"""Forgets what nobody asks for any more: traces by which a repeated create found its batch, old deliveries and mails."""

from gridline.batches import repeats
from gridline.db.work import unit_of_work
from gridline.notices import owed_mails, parcels

PASSES_MAX = 20


def forget() -> int:
    """Delete old traces, deliveries and mails, some in each transaction; how many. What a pass leaves is the next one's."""
    gone = 0
    for _ in range(PASSES_MAX):
        with unit_of_work() as work:
            some = repeats.forget(work) + parcels.forget(work) + owed_mails.forget(work)
        gone += some
        if not some:
            break
    return gone
