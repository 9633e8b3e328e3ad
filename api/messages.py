"""Messages to the operator: what customers write, about a batch or about none."""

from typing import Any

from flask import Blueprint

from api import auth, bodies, queries, rates
from api.batches import checked_id
from api.reference.operations import operation
from gridline.batches import reading
from gridline.db.work import unit_of_work
from gridline.notices import messages
from gridline.notices.requests import parse_message

blueprint = queries.strict(auth.guard(Blueprint("messages", __name__)))


@blueprint.post("/messages")
@operation(
    "Account",
    "createMessage",
    "Write to the operator",
    body="MessageCreate",
    returns="Message",
    refuses=("string_above_max_length", "not_found"),
)
def create_message() -> dict[str, Any]:
    """Store a message for the operator, who also gets it by mail where that is set up. Leave tokens out of it."""
    who = auth.caller()
    wanted = parse_message(bodies.json_body())
    if wanted.batch_id is not None:
        checked_id(wanted.batch_id)
    with unit_of_work() as work:
        if wanted.batch_id is not None:
            reading.get(work, account_id=who.account_id, batch_id=wanted.batch_id)
        rates.admit_message(who.account_id)
        return messages.message_object(messages.write(work, who.account_id, wanted, actor=who.actor))
