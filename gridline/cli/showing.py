"""A batch in words: what every command that shows one says of it."""

from gridline.client import Batch, LineError
from gridline.money import credits_text


def parts(one: Batch) -> list[tuple[str, object]]:
    """Name and value of everything worth a line; None where there is nothing to say."""
    return [
        ("id", one.id),
        ("status", one.status),
        ("model", one.model),
        ("lines", progress(one)),
        ("waits", one.wait.reason if one.wait else None),
        ("next step", one.wait.next_step if one.wait else None),
        ("held", None if one.hold_nanos is None else f"{credits_text(one.hold_nanos)} credits"),
        ("cost", None if one.cost_nanos is None else f"{credits_text(one.cost_nanos)} credits"),
        ("output file", one.output_file_id),
        ("error file", one.error_file_id),
        *(("error", where(error)) for error in one.errors),
    ]


def progress(batch: Batch) -> str:
    """How far its lines are."""
    counts = batch.counts
    failed = f", {counts.failed} failed" if counts.failed else ""
    return f"{counts.completed} of {counts.total} completed{failed}"


def where(error: LineError) -> str:
    """An error of validation, with the line that it speaks of."""
    return error.message if error.line is None else f"line {error.line}: {error.message}"
