"""`gridline models withdraw`, `gridline ops webhooks` and `disable-webhook`, against a real database."""

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, text

from gridline.catalog.cards import catalogue, listed, record_qualification
from gridline.cli.main import main
from gridline.db.work import unit_of_work
from gridline.operate import accounts

MODEL = "smollm2-135m-instruct"

# Every command works on the test's database.
pytestmark = pytest.mark.usefixtures("database")


def run(*arguments: str) -> Result:
    """What a command did."""
    return CliRunner().invoke(main, list(arguments))


def ok(*arguments: str) -> str:
    """What a command that works prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def qualified() -> None:
    """A run of the model that passed."""
    with unit_of_work() as work:
        record_qualification(
            work, catalogue()[MODEL], engine_version="1", passed=True, tokens_per_second=9, details={}
        )


def models_listed() -> list[str]:
    """What customers may use."""
    with unit_of_work() as work:
        return [card.id for card in listed(work)]


def test_a_withdrawn_model_is_listed_no_more_until_it_qualifies_again(owner: Engine) -> None:
    """Once, however often it is said; why stands beside the runs and, with who, in the audit; a pass lists it again."""
    qualified()
    assert models_listed() == [MODEL]
    assert ok("models", "withdraw", MODEL, "--why", "answers in  French") == "withdrawn\n"
    assert models_listed() == []
    assert "nothing has changed" in ok("models", "withdraw", MODEL, "--why", "once more")
    with owner.connect() as connection:
        runs = connection.execute(
            text("SELECT passed, engine_version, details FROM qualifications ORDER BY sequence")
        ).all()
        audited = connection.execute(
            text("SELECT account_id, actor, details FROM audit WHERE action = 'model.withdrawn'")
        ).all()
    assert [tuple(row) for row in runs] == [
        (True, "1", {}),
        (False, "1", {"withdrawn": "answers in French"}),
    ]
    details = {"model": MODEL, "commit": catalogue()[MODEL].commit, "why": "answers in French"}
    assert [tuple(row) for row in audited] == [(None, accounts.operator(), details)]
    qualified()
    assert models_listed() == [MODEL]


def test_a_withdrawal_needs_a_model_and_a_reason() -> None:
    """A model that is not in the catalogue, a missing reason and an empty one are refused; nothing has changed."""
    qualified()
    assert "no model 'gpt-9'" in run("models", "withdraw", "gpt-9", "--why", "x").output
    assert run("models", "withdraw", MODEL).exit_code == 2
    assert "Say why" in run("models", "withdraw", MODEL, "--why", " ").output
    assert models_listed() == [MODEL]


def test_a_model_that_never_passed_is_left_alone() -> None:
    """There is nothing to withdraw, and nothing is written."""
    assert ok("models", "withdraw", MODEL, "--why", "x") == "not qualified; nothing has changed\n"
