"""Holds a batch that has ended against its input: every line once, in input order, charged to the last unit."""

import json
from typing import Any

from gridline.batches.endings import COMPLETED
from gridline.batches.states import Status
from gridline.storage import layout
from gridline.usage.charging import charge_nanos
from tests.simulation.clients import CARDS
from tests.simulation.history import Violation
from tests.simulation.jobs import Written
from tests.simulation.looks import Looks, Row

Line = dict[str, Any]


def judge(looks: Looks, batch: Row, written: Written) -> None:
    """Everything that a customer can check of an ended batch."""
    output, error = _lines(looks, batch, "output_file_id"), _lines(looks, batch, "error_file_id")
    charged = looks.rows(f"SELECT * FROM resolutions WHERE batch_id = '{batch['id']}'")
    if batch["status"] == Status.FAILED or batch["validated_at"] is None:
        if output or error or batch["completed"] or any(one["charged_nanos"] for one in charged):
            raise Violation(
                f"Batch {batch['id']} ended {batch['status']} before it ran, with results or a charge."
            )
        return
    _judge_lines(looks, batch, output, error)
    _judge_counts(batch, output, error)
    _judge_losses(looks, batch, error)
    _judge_answers(batch, output, written)
    tokens = [one["response"]["body"]["usage"] for one in output]
    card = CARDS[batch["model"]]
    price = charge_nanos(
        card.copy(),
        sum(one["prompt_tokens"] for one in tokens),
        sum(one.get("completion_tokens", 0) for one in tokens),
    )
    if [one["charged_nanos"] for one in charged] != [price]:
        told = [one["charged_nanos"] for one in charged]
        raise Violation(f"Batch {batch['id']} was charged {told}, its output file comes to {price}.")


def _lines(looks: Looks, batch: Row, column: str) -> list[Line]:
    if batch[column] is None:
        return []
    content = looks.objects.data[layout.file_key(batch["account_id"], batch[column])]
    return [json.loads(line) for line in content.splitlines()]


def _judge_lines(looks: Looks, batch: Row, output: list[Line], error: list[Line]) -> None:
    wanted = looks.inputs[batch["input_file_id"]].custom_ids
    ids = [one["custom_id"] for one in output], [one["custom_id"] for one in error]
    if sorted(ids[0] + ids[1]) != sorted(wanted):
        raise Violation(f"Batch {batch['id']} has lines {ids}, its input {wanted}.")
    for one in ids:
        if one != [custom_id for custom_id in wanted if custom_id in one]:
            raise Violation(f"Batch {batch['id']} has lines out of order: {one}.")


def _judge_counts(batch: Row, output: list[Line], error: list[Line]) -> None:
    cancelled = sum((one["error"] or {}).get("code") == "batch_cancelled" for one in error)
    expired = sum((one["error"] or {}).get("code") == "batch_expired" for one in error)
    counts = (batch["total"], batch["completed"], batch["failed"], batch["cancelled"])
    files = (len(output) + len(error), len(output), len(error) - cancelled, cancelled)
    if counts != files:
        raise Violation(f"Batch {batch['id']} counts {counts}, its files have {files}.")
    if (cancelled and batch["status"] != Status.CANCELLED) or (expired and batch["status"] != Status.EXPIRED):
        raise Violation(f"Batch {batch['id']} is {batch['status']}, its lines say another end.")


def _judge_losses(looks: Looks, batch: Row, error: list[Line]) -> None:
    """Lines are given up after three attempts on a healthy engine, or when somebody ended the run; else never."""
    bodies = [one["response"]["body"]["error"] for one in error if one["response"] is not None]
    lost = sum(one["message"] == COMPLETED.message for one in bodies)
    if lost and batch["id"] not in looks.harmed and "given_up" not in looks.partition_states(batch["id"]):
        raise Violation(f"Batch {batch['id']} lost {lost} lines and nobody had ended its run.")


def _judge_answers(batch: Row, output: list[Line], written: Written) -> None:
    number = {f"{kind}{at}": at for at in range(8) for kind in "ce"}
    for one in output:
        bodies = written.get((batch["id"], number[one["custom_id"]]), set())
        if one["response"]["body"] not in [json.loads(body) for body in bodies]:
            raise Violation(f"Batch {batch['id']}: no engine ever gave the answer of {one['custom_id']}.")
