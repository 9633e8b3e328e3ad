"""What the call about a batch's waits gives."""

from api.reference.shapes import Schema, choice, constant, moment, nullable, page, thing
from gridline.batches.reasons import ReasonCode

CREATED = 1767614400


def schemas() -> dict[str, Schema]:
    """Components by name."""
    return {"Wait": _wait(), "WaitList": page("Wait", cursors=False)}


def _wait() -> Schema:
    return thing(
        "A time for which a batch waited, and for what.",
        {
            "object": constant("batch.wait", "Always `batch.wait`."),
            "reason_code": choice(
                "The wait's code.",
                ReasonCode,
                ReasonCode.GRIDLINE_CAPACITY,
            ),
            "since": moment("When it began.", CREATED),
            "until": nullable(moment("When it was over; null while it lasts.", CREATED + 90)),
        },
    )
