"""Why a batch waits: the codes, and in one sentence each what the wait is and what helps (product B10)."""

from dataclasses import dataclass
from enum import StrEnum


class ReasonCode(StrEnum):
    """Codes of product B7, as ``gridline.reason_code`` shows them."""

    STARTING = "starting"
    VALIDATING_FILE = "validating_file"
    ACCOUNT_CAPACITY = "account_capacity"
    CUSTOMER_CREDIT = "customer_credit"
    GRIDLINE_CAPACITY = "gridline_capacity"
    PLATFORM_DAILY_LIMIT = "platform_daily_limit"
    MODEL_LOADING = "model_loading"
    RETRYING = "retrying"
    HELD_BY_OPERATOR = "held_by_operator"


@dataclass(frozen=True)
class Reason:
    """What the customer reads."""

    sentence: str
    next_step: str


REASONS: dict[ReasonCode, Reason] = {
    ReasonCode.STARTING: Reason(
        "The batch is accepted and about to start.",
        "Nothing to do: it goes on by itself, also after a short outage. Do not resubmit it.",
    ),
    ReasonCode.VALIDATING_FILE: Reason(
        "Every line of the input file is being checked and its tokens counted.",
        "Nothing to do: large files take a few minutes.",
    ),
    ReasonCode.ACCOUNT_CAPACITY: Reason(
        "Your account's other batches use all the GPU capacity that your account may use at once.",
        "Wait for another of your batches to end. The accepted batch goes on by itself; do not resubmit it.",
    ),
    ReasonCode.CUSTOMER_CREDIT: Reason(
        "Your available credit does not cover the most that this batch can cost.",
        "Look at your balance before adding more: if you already added enough, the next check takes it. "
        "Do not resubmit the batch.",
    ),
    ReasonCode.GRIDLINE_CAPACITY: Reason(
        "All GPUs that serve this model are busy with other batches.",
        "Wait: more credit or a second copy of the batch does not help.",
    ),
    ReasonCode.PLATFORM_DAILY_LIMIT: Reason(
        "The platform has used its budget for today.",
        "Wait: the budget resets at 00:00 UTC and the batch goes on by itself.",
    ),
    ReasonCode.MODEL_LOADING: Reason(
        "A GPU is reserved and the model is being loaded onto it.",
        "Nothing to do: this takes seconds to a few minutes.",
    ),
    ReasonCode.RETRYING: Reason(
        "A GPU job was lost; what it finished is kept and the rest is run again.",
        "Nothing to do: finished lines are not run or charged twice.",
    ),
    ReasonCode.HELD_BY_OPERATOR: Reason(
        "An operator holds this batch.",
        "Wait: it goes on by itself once it is released, and its time limits go on meanwhile. If the note does not say "
        "why, write to the operator with the batch id.",
    ),
}


def sentence(code: ReasonCode, note: str | None = None) -> str:
    """What the customer reads; an operator's note is part of the sentence."""
    said = REASONS[code].sentence
    if code is not ReasonCode.HELD_BY_OPERATOR or not note:
        return said
    return f"{said.rstrip('.')}: {note.rstrip('.')}."
