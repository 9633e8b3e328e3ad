"""The proof of the whole platform: books, rows and objects; and the record that its last one leaves."""

from sqlalchemy import select

from gridline.db.work import Work, unit_of_work
from gridline.ledger import proving as books
from gridline.proof import objects, results, rows
from gridline.proof.tables import Proof

SENTENCES_MAX = 100
"""Sentences that a record keeps; it counts all."""


def prove() -> list[str]:
    """Every promise that does not hold, a sentence each. Looks at all rows and at a sample of the objects."""
    return _rows() + objects.prove(everything=False)


def prove_with_files() -> results.Read:
    """The same of every object, and every settled batch's charge and order computed again from its files."""
    found = results.prove()
    return results.Read(_rows() + objects.prove(everything=True) + found.broken, found.batches)


def prove_and_record() -> list[str]:
    """``prove``, and its outcome as a row for the metrics and whoever asks later."""
    broken = prove()
    with unit_of_work() as work:
        work.session.add(Proof(at=work.now, broken=len(broken), sentences=broken[:SENTENCES_MAX]))
    return broken


def last(work: Work) -> Proof | None:
    """The newest record; None before the first proof."""
    return work.session.scalars(select(Proof).order_by(Proof.sequence.desc()).limit(1)).one_or_none()


def _rows() -> list[str]:
    with unit_of_work() as work:
        return books.prove(work) + rows.prove(work)
