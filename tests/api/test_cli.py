"""The customer's commands against the live API: in a pipe, and in a terminal of their own."""

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from gridline.batches import finishing
from gridline.batches.tables import Partition
from gridline.clock import FrozenClock
from gridline.db.work import unit_of_work
from gridline.files.tables import File
from gridline.ids import new
from gridline.storage.objects import Store
from tests.api.commanding import Run, run
from tests.api.conftest import LINES, Customer, end, line
from tests.gridline.batches.bench import Bench
from tests.terminal import Terminal

__all__ = ["run"]


@pytest.fixture
def ended(ann: Customer, store: Store) -> str:
    """A batch of three lines, two of which have a result: it expired."""
    bench = Bench(FrozenClock(datetime(2026, 1, 5, tzinfo=UTC)), store, ann.account_id)
    batch, lease = bench.held(lines=(3,)), new("lease")
    lines = b"".join(line(f"c{number}") for number in range(3))
    with unit_of_work() as work:
        file = work.session.get_one(File, batch.input_file_id)
        file.bytes = len(lines)
        store.put_once(file.object_key, lines)
    bench.claim(batch, 0, lease=lease)
    bench.segment(batch, 0, [2, 0], lease=lease)
    with unit_of_work() as work:
        work.session.get_one(Partition, (batch.id, 0)).state = "given_up"
    finishing.finish(batch.id, run_over=True)
    return batch.id


def objects(done: Result) -> list[dict[str, Any]]:
    """The JSON lines of a command."""
    return [json.loads(one) for one in done.stdout.splitlines()]


def test_files_go_up_down_and_away(run: Run, tmp_path: Path) -> None:
    """Uploaded, listed, downloaded as it was, deleted: in a pipe each answer is the API's own object on one line."""
    path = tmp_path / "questions.jsonl"
    path.write_bytes(LINES)
    (file,) = objects(run("files", "upload", str(path)))
    assert (file["object"], file["filename"], file["bytes"]) == ("file", "questions.jsonl", len(LINES))
    assert file["id"] in [one["id"] for one in objects(run("files", "list"))]
    assert run("files", "download", file["id"]).stdout_bytes == LINES
    run("files", "download", file["id"], "-o", str(tmp_path / "again.jsonl"))
    assert list(tmp_path.glob("*.part")) == []
    assert (tmp_path / "again.jsonl").read_bytes() == LINES
    run("files", "delete", file["id"])
    assert "No such File object" in run("files", "download", file["id"], status=1).stderr


def test_pages_go_on_where_they_ended(run: Run, ann: Customer) -> None:
    """A list says on stderr how to see more, and that shows the rest."""
    for _ in range(3):
        ann.file()
    first = run("files", "list", "--limit", "2")
    hint = first.stderr.partition("More: gridline ")[2].split()
    rest = run(*hint)
    shown = [one["id"] for done in (first, rest) for one in objects(done)]
    assert len(shown) == len(set(shown)) == 3


@pytest.mark.usefixtures("prepared")
def test_a_check_says_what_is_wrong_and_what_it_costs(run: Run, tmp_path: Path) -> None:
    """A good file has a ceiling; a bad one exits with 1 and names its line."""
    path = tmp_path / "questions.jsonl"
    path.write_bytes(LINES)
    (found,) = objects(run("files", "check", str(path)))
    assert (found["lines"], found["errors"]) == (2, None)
    path.write_bytes(LINES + b"{}\n")
    (found,) = objects(run("files", "check", str(path), status=1))
    assert found["errors"]["data"][0]["line"] == 3


def test_a_batch_from_create_to_cancel(run: Run, tmp_path: Path) -> None:
    """Created of a path with the endpoint of its first line, shown, listed, and cancelled without a question."""
    path = tmp_path / "questions.jsonl"
    path.write_bytes(LINES)
    made = run("batches", "create", str(path), "--window", "72h", "--description", "first")
    (batch,) = objects(made)
    assert f"Uploaded {path} as {batch['input_file_id']}." in made.stderr
    assert (batch["endpoint"], batch["completion_window"]) == ("/v1/chat/completions", "72h")
    assert batch["metadata"] == {"description": "first"}
    assert objects(run("batches", "show", batch["id"]))[0]["id"] == batch["id"]
    assert [one["id"] for one in objects(run("batches", "list"))] == [batch["id"]]
    assert "is validating" in run("batches", "results", batch["id"], status=1).stderr
    assert objects(run("batches", "cancel", batch["id"], "--yes"))[0]["status"] == "cancelling"


def test_a_file_that_names_no_endpoint_is_asked_about(run: Run, tmp_path: Path) -> None:
    """Before anything is uploaded the command asks for what it cannot know; status 2 is a wrong use."""
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b"\n")
    assert "--endpoint" in run("batches", "create", str(path), status=2).stderr
    assert objects(run("files", "list")) == []


def test_results_of_a_batch_that_expired_in_part(run: Run, ended: str, tmp_path: Path) -> None:
    """Results in input order, the others apart; its status is 3 for scripts, and what to do next is said."""
    assert [one["custom_id"] for one in objects(run("batches", "results", ended))] == ["c0", "c2"]
    assert [one["custom_id"] for one in objects(run("batches", "results", ended, "--errors"))] == ["c1"]
    assert [one["custom_id"] for one in objects(run("batches", "results", ended, "--partial"))] == [
        "c2",
        "c0",
    ]
    into = tmp_path / "out.jsonl"
    done = run("batches", "watch", ended, "-o", str(into), status=3)
    assert objects(done)[-1]["status"] == "completed"
    assert f"gridline batches results {ended} --errors" in done.stderr
    assert len(into.read_bytes().splitlines()) == 2


def test_failed_lines_go_again(run: Run, ended: str, tmp_path: Path) -> None:
    """The lines without a result become a file, or at once a batch that says of which it is the retry."""
    into = tmp_path / "failed.jsonl"
    assert "1 lines written" in run("batches", "retry", ended, "-o", str(into)).stderr
    assert into.read_bytes() == line("c1")
    (again,) = objects(run("batches", "retry", ended))
    assert (again["status"], again["metadata"]) == ("validating", {"retry_of": ended})
    assert run("files", "download", again["input_file_id"]).stdout_bytes == line("c1")
    assert "is validating" in run("batches", "retry", again["id"], status=1).stderr


def test_a_batch_that_was_cancelled_is_status_4(run: Run, ann: Customer) -> None:
    """What waits for an end tells a cancelled batch from a completed and a failed one."""
    batch = str(ann.batch()["id"])
    end(batch, "cancelling")
    end(batch, "cancelled")
    assert objects(run("batches", "watch", batch, status=4))[-1]["status"] == "cancelled"
    other = str(ann.batch()["id"])
    end(other, "failed")
    run("batches", "watch", other, status=1)


def test_money(run: Run, ended: str) -> None:
    """Balance, usage and statement say the same as the API, the statement also as CSV."""
    (balance,) = objects(run("balance"))
    (statement,) = objects(run("statement", "--from", "2026-01-01", "--to", "2026-01-31"))
    assert statement["object"] == "gridline.statement"
    assert balance["held"] == "0.000000000"
    sheet = run("statement", "--csv").stdout.splitlines()
    assert [one.split(",")[2] for one in (sheet[0], sheet[1], sheet[-1])] == ["kind", "opening", "closing"]
    assert all(one["object"] == "gridline.usage" for one in objects(run("usage")))
    assert "--csv" in run("statement", "-o", "x.csv", status=2).stderr


def test_a_foreign_batch_is_not_found(run: Run, bob: Customer) -> None:
    """Another account's batch is a sentence and status 1, as one that does not exist."""
    batch = str(bob.batch()["id"])
    for command in ("show", "cancel", "results", "retry", "watch"):
        words = ["--yes"] if command == "cancel" else []
        assert "No batch found" in run("batches", command, batch, *words, status=1).stderr


def in_terminal(address: str, customer: Customer, *words: str) -> Terminal:
    """A command of the customer's."""
    return Terminal({"OPENAI_BASE_URL": address, "OPENAI_API_KEY": customer.token}, *words)


@pytest.mark.programs
def test_a_session_in_a_terminal(address: str, ann: Customer) -> None:
    """Tables instead of JSON, a question before a cancel, and Ctrl-C that leaves the batch and says how to come back."""
    batch = str(ann.batch(ann.file(line("a")), metadata={"description": "red \x1b[31mcolour"})["id"])
    shown = in_terminal(address, ann, "batches", "list")
    assert shown.end() == 0
    assert batch in shown.seen
    assert "description" in shown.seen
    assert "{" not in shown.seen
    # What a customer named moves nothing on a terminal.
    assert "\x1b[31mcolour" not in shown.seen

    watched = in_terminal(address, ann, "batches", "watch", batch)
    watched.until("validating")
    watched.process.send_signal(signal.SIGINT)
    assert watched.end() == 130
    assert f"gridline batches watch {batch}" in watched.seen

    kept = in_terminal(address, ann, "batches", "cancel", batch)
    kept.until("will be charged")
    kept.type("n\n")
    assert kept.end() == 1
    assert ann.sdk.batches.retrieve(batch).status == "validating"


@pytest.mark.programs
def test_an_operators_side_is_not_loaded_for_a_customer() -> None:
    """A customer's command starts without the database's libraries."""
    words = "import sys; from gridline.cli.main import main; main(['completion', 'bash'], standalone_mode=False); "
    done = subprocess.run(
        [sys.executable, "-c", words + "print([one for one in ('sqlalchemy', 'psycopg') if one in sys.modules])"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "_GRIDLINE_COMPLETE" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
