"""What is signed is what openai-node verifies, too."""

import json
import subprocess
from typing import Any

import pytest

from gridline.batches.states import Status
from gridline.settings import ROOT
from tests.gridline.notices.conftest import Notices
from tests.gridline.notices.receiver import Receiver

pytestmark = [pytest.mark.programs, pytest.mark.deep]

UNWRAP = [ROOT / ".venv/bin/node", ROOT / "tests/conformance/node/unwrap.mjs"]


def unwrapped(body: bytes, headers: dict[str, str], *, secret: str, now: float) -> Any:
    """What the SDK makes of a delivery at this time."""
    given = json.dumps({"body": body.decode(), "headers": headers, "secret": secret, "now": now})
    done = subprocess.run(UNWRAP, input=given, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_openai_node_unwraps_a_delivered_event(notices: Notices, receiver: Receiver) -> None:
    """The unmodified SDK gives the event; it refuses a changed body, another's secret, and one that comes too late."""
    webhook = notices.webhook(receiver.url)
    batch_id = notices.ended(Status.FAILED)
    notices.deliver()
    (got,) = receiver.got
    headers, secret, now = dict(got.headers), webhook.secret, notices.clock.now().timestamp()
    event = unwrapped(got.body, headers, secret=secret, now=now)["event"]
    assert (event["type"], event["data"]["id"], event["id"]) == ("batch.failed", batch_id, got.event_id)
    refused = {"refused": "InvalidWebhookSignatureError"}
    assert unwrapped(got.body + b" ", headers, secret=secret, now=now) == refused
    assert unwrapped(got.body, headers, secret="whsec_" + "A" * 32, now=now) == refused
    assert unwrapped(got.body, headers, secret=secret, now=now + 301) == refused
