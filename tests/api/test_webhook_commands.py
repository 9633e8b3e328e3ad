"""`gridline webhooks` against the live API, and `gridline ops messages`."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gridline.cli.main import main
from gridline.cli.output import Output
from gridline.db.work import unit_of_work
from gridline.notices import webhooks
from tests.api.commanding import Run, run
from tests.api.conftest import Customer

URL = "https://93.184.215.14/hooks"
__all__ = ["run"]


def one(done: Result) -> dict[str, Any]:
    """The one JSON line of a command."""
    (line,) = done.stdout.splitlines()
    shown: dict[str, Any] = json.loads(line)
    return shown


def test_webhooks_from_creation_to_deletion(run: Run, ann: Customer) -> None:
    """Each command prints the API's own object; the secret comes with a word of warning that is no data."""
    done = run("webhooks", "create", URL, "--event", "batch.failed")
    webhook = one(done)
    assert (webhook["url"], webhook["events"]) == (URL, ["batch.failed"])
    assert webhook["secret"].startswith("whsec_")
    assert "cannot be shown again" in done.stderr
    listed = one(run("webhooks", "list"))
    assert listed == {name: value for name, value in webhook.items() if name != "secret"}
    assert one(run("webhooks", "rotate", webhook["id"]))["secret"] != webhook["secret"]
    sent = [one(run("webhooks", "test", webhook["id"]))["id"] for _ in range(2)]
    page = run("webhooks", "deliveries", webhook["id"], "--limit", "1")
    assert one(page)["id"] == sent[1]
    assert f"--after {sent[1]}" in page.stderr
    assert one(run("webhooks", "deliveries", webhook["id"], "--after", sent[1]))["id"] == sent[0]
    assert one(run("webhooks", "delete", webhook["id"]))["deleted"] is True
    refused = run("webhooks", "delete", webhook["id"], status=1)
    assert "No webhook found" in refused.stderr


def test_a_terminal_gets_tables(run: Run, ann: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With their state in words: enabled, failing, disabled and why."""

    def table(self: Output, *, as_json: bool) -> None:
        self.as_json = as_json

    monkeypatch.setattr(Output, "__init__", table)
    monkeypatch.setenv("COLUMNS", "200")
    made = run("webhooks", "create", URL).stdout
    assert "whsec_" in made
    with unit_of_work() as work:
        (hook,) = webhooks.every(work, ann.account_id)
        hook.failing_since = work.now
    assert "failing" in run("webhooks", "list").stdout
    with unit_of_work() as work:
        hook = webhooks.get(work, ann.account_id, hook.id)
        hook.failing_since = None
    assert "enabled" in run("webhooks", "list").stdout
    run("webhooks", "test", hook.id)
    shown = run("webhooks", "deliveries", hook.id).stdout
    assert "webhook.test" in shown
    assert "pending" in shown
    ann.http.post(f"/gridline/v1/webhooks/{hook.id}", json={"disabled": True})
    assert "disabled (disabled_by_customer)" in run("webhooks", "list").stdout
    assert hook.id in run("webhooks", "delete", hook.id).stdout


def test_messages_move_no_terminal(run: Run, ann: Customer) -> None:
    """Newest first, one row each, whatever they hold: no line end, no escape, no text that runs backwards."""
    for text in ("first", "second\nrow\t\x1b[2J\x1b]0;title\x07 \u202edrawkcab"):
        assert ann.http.post("/gridline/v1/messages", json={"text": text}).status_code == 200
    head, newest = CliRunner().invoke(main, ["ops", "messages", "--limit", "1"]).output.splitlines()
    assert head.split("\t") == ["UTC", "message", "account", "batch", "text"]
    cells = newest.split("\t")
    assert ann.account_id in cells[2]
    assert cells[4] == "second row \ufffd[2J\ufffd]0;title\ufffd \ufffddrawkcab"
    assert newest.isprintable() or newest.replace("\t", "").isprintable()
