"""The customers' command as a test runs it: against the live API, as Ann."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from gridline.cli.main import main
from tests.api.conftest import Customer

Run = Callable[..., Result]


@pytest.fixture
def run(address: str, ann: Customer) -> Run:
    """Runs a command as Ann, in a pipe."""

    def one(*words: str, status: int = 0) -> Result:
        variables = {"OPENAI_BASE_URL": f"{address}/openai/v1", "OPENAI_API_KEY": ann.token}
        done = CliRunner().invoke(main, words, env=variables)
        assert done.exit_code == status, done.output
        return done

    return one
