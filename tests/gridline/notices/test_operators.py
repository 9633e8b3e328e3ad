"""What operators see of customers' webhooks, and how they end a storm, with the real outbox."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, text

from gridline.cli.main import main
from gridline.db.work import unit_of_work
from gridline.notices import webhooks
from gridline.notices.requests import WebhookRequest
from tests.gridline.notices.conftest import Notices
from tests.gridline.notices.receiver import Receiver

Command = Callable[..., str]


@pytest.fixture
def ops() -> Command:
    """Runs a command of `gridline ops`, and says what it printed."""

    def run(*arguments: str, status: int = 0) -> str:
        result = CliRunner().invoke(main, ["ops", *arguments])
        assert result.exit_code == status, result.output
        return result.output

    return run


def test_those_that_fail_come_first_with_their_host_alone(
    notices: Notices, receiver: Receiver, ops: Command
) -> None:
    """One row each: whose it is, since when it fails and what it is owed; nothing of its path, query or secret."""
    failing = notices.webhook(receiver.url)
    receiver.answer = lambda _: 500
    notices.ended()
    notices.deliver()
    well = notices.webhook("https://example.org/path?key=hidden")
    head, *rows = ops("webhooks").splitlines()
    assert head.split("\t") == [
        "webhook", "account", "host", "failing since (UTC)", "open deliveries", "state"
    ]  # fmt: skip
    account = f"tester ({failing.account_id})"
    since = f"{notices.clock.now():%Y-%m-%d %H:%M}"
    assert [row.split("\t") for row in rows] == [
        [failing.id, account, "127.0.0.1", since, "1", "enabled"],
        [well.id, account, "example.org", "", "0", "enabled"],
    ]
    assert ops("webhooks", "--limit", "1").splitlines() == [head, rows[0]]


def test_a_disabled_webhook_is_asked_no_more_until_its_customer_enables_it(
    notices: Notices, receiver: Receiver, ops: Command, owner: Engine
) -> None:
    """Nothing is sent while it is disabled; its customer reads why; enabled again it gets what it is owed."""
    webhook = notices.webhook(receiver.url)
    receiver.answer = lambda _: 500
    notices.ended()
    notices.deliver()
    assert ops("disable-webhook", webhook.id, "--why", "It answers 500 to  everything.") == "disabled\n"
    notices.clock.advance(hours=1)
    assert notices.deliver() == 0
    shown = webhooks.webhook_object(notices.shown(webhook))
    reason = "disabled_by_operator: It answers 500 to everything."
    assert (shown["disabled"], shown["disabled_reason"]) == (True, reason)
    assert f"\t1\tdisabled ({reason})" in ops("webhooks")
    receiver.answer = lambda _: 204
    with unit_of_work() as work:
        found = webhooks.get(work, webhook.account_id, webhook.id, lock=True)
        webhooks.update(work, found, WebhookRequest(disabled=False), actor="token:t")
    assert notices.deliver() == 1
    assert notices.deliveries()[0].delivered_at
    with owner.connect() as connection:
        audited = connection.execute(
            text("SELECT actor, details FROM audit WHERE action = 'webhook.operator_disable'")
        ).all()
    ((actor, details),) = audited
    assert actor.startswith("operator:")
    assert details == {"webhook_id": webhook.id, "why": "It answers 500 to everything."}


def test_a_webhook_is_disabled_once_and_with_a_reason(
    notices: Notices, receiver: Receiver, ops: Command
) -> None:
    """Said again it changes nothing, the first reason stays; an unknown one and an empty reason are refused."""
    webhook = notices.webhook(receiver.url)
    ops("disable-webhook", webhook.id, "--why", "first")
    assert "nothing has changed" in ops("disable-webhook", webhook.id, "--why", "second")
    assert notices.shown(webhook).disabled_reason == "disabled_by_operator: first"
    assert "There is no webhook 'whk_x'" in ops("disable-webhook", "whk_x", "--why", "x", status=1)
    assert "Say why" in ops("disable-webhook", webhook.id, "--why", " ", status=1)
