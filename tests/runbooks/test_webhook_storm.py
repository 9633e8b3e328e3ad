"""Runbook: webhook storm."""

import pytest

from gridline.client import Client
from tests.gridline.notices.receiver import receiving
from tests.runbooks.bench import Platform
from tests.stack import eventually

pytestmark = [pytest.mark.stack, pytest.mark.trial, pytest.mark.timeout(600)]

WHY = "It answers 500 to everything: mend it, then enable it."
EVENTS = 8
FAILED = 'gridline_webhook_attempts_total{result="failed"}'
DUE_NOW = "UPDATE webhook_deliveries SET due_at = now() WHERE webhook_id = %s RETURNING event_id"
OVERDUE = "SELECT FROM webhook_deliveries WHERE webhook_id = %s AND due_at < now() - interval '8 seconds'"


def listed(platform: Platform) -> dict[str, list[str]]:
    """The operator's list by webhook, in its order."""
    rows = [line.split("\t") for line in platform.stack.gridline("ops", "webhooks").splitlines()[1:]]
    return {row[0]: row[1:] for row in rows}


def test_webhook_storm(platform: Platform) -> None:
    """The list names the receiver that fails; disabled it is asked no more; its customer reads why and loses no event."""
    customer = platform.stack.customer("storm")
    with receiving() as receiver, Client(customer.url, customer.token) as client:
        receiver.answer = lambda _: 500
        hook = client.webhooks.create(receiver.url)["id"]
        failed = platform.metric(FAILED)
        for _ in range(EVENTS):
            client.webhooks.test(hook)
        eventually(
            lambda: platform.metric(FAILED) >= failed + EVENTS, seconds=60, what="the alert's metric grows"
        )
        found = listed(platform)
        assert next(iter(found)) == hook
        assert found[hook][:2] == [f"{customer.name} ({customer.id})", "127.0.0.1"]
        assert found[hook][3:] == [str(EVENTS), "enabled"]

        platform.stack.gridline("ops", "disable-webhook", hook, "--why", WHY)

        asked = len(receiver.got)
        assert len(platform.stack.rows(DUE_NOW, hook)) == EVENTS
        eventually(
            lambda: len(platform.stack.rows(OVERDUE, hook)) == EVENTS,
            seconds=30, what="every event would have been sent again", every=1,
        )  # fmt: skip
        assert len(receiver.got) == asked
        assert listed(platform)[hook][4] == f"disabled (disabled_by_operator: {WHY})"
        (shown,) = client.webhooks.every()
        assert shown["disabled_reason"] == f"disabled_by_operator: {WHY}"
        receiver.answer = lambda _: 204
        client.webhooks.change(hook, disabled=False)
        eventually(
            lambda: listed(platform)[hook][3] == "0", seconds=60, what="nothing is owed any more", every=1
        )
        owed = {one.event_id for one in receiver.got[:asked]}
        assert {one.event_id for one in receiver.got[asked:]} == owed
        (shown,) = client.webhooks.every()
        assert shown["failing_since"] is None
    assert platform.books_hold()
