"""A batch's waits over HTTP."""

from gridline.batches import moves, waits
from gridline.batches.reasons import ReasonCode
from gridline.capacity import operator_hold
from gridline.db.work import unit_of_work
from tests.api.conftest import Customer


def test_waits_are_told_oldest_first(ann: Customer) -> None:
    """From its creation on: code, since, until; the last has no end while it lasts."""
    batch = ann.batch()
    path = f"/gridline/v1/batches/{batch['id']}/waits"
    assert ann.http.get(path).json() == {
        "object": "list",
        "data": [
            {
                "object": "batch.wait", "reason_code": "starting",
                "since": batch["created_at"], "until": None,
            }
        ],
        "has_more": False,
    }  # fmt: skip
    with unit_of_work() as work:
        locked = moves.locked(work, str(batch["id"]))
        waits.set_reason(work, locked, ReasonCode.VALIDATING_FILE)
        waits.set_reason(work, locked, None)
    first, second = ann.http.get(path).json()["data"]
    assert (first["reason_code"], second["reason_code"]) == ("starting", "validating_file")
    assert first["since"] <= first["until"] == second["since"] <= second["until"]


def test_an_operators_note_is_in_the_reason(ann: Customer) -> None:
    """The customer reads the note in the batch itself, and who held it on the timeline without a person's name."""
    batch_id = str(ann.batch()["id"])
    with unit_of_work() as work:
        operator_hold.hold(work, batch_id, note="We look at line 3.", actor="operator:ada")
    shown = ann.http.get(f"/v1/batches/{batch_id}").json()
    assert shown["status"] == "validating"
    assert shown["gridline"]["reason"] == "An operator holds this batch: We look at line 3."
    assert shown["gridline"]["reason_code"] == "held_by_operator"
    events = ann.http.get(f"/gridline/v1/batches/{batch_id}/events")
    assert "operator_hold" in [one["kind"] for one in events.json()["data"]]
    assert "ada" not in events.text
