"""The client's configuration file: who may read it, what it opens, and what is said when it cannot be read."""

import stat
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gridline.cli import configuration
from gridline.cli.configuration import Configuration
from gridline.cli.main import main

HELD = Configuration("http://api.example/openai/v1", 'gl_live_"quoted"\\')


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a configuration, and no variable that says where the API is."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_what_is_written_is_read(home: Path) -> None:
    """The file is in the home of configurations, comes back as it was, and may be written again."""
    assert configuration.load() is None
    for _ in range(2):
        configuration.save(HELD)
        assert configuration.load() == HELD
    assert configuration.path() == home / "gridline" / "client.toml"
    assert list(configuration.path().parent.iterdir()) == [configuration.path()]
    assert HELD.token not in repr(HELD)


def test_nobody_else_can_read_it(home: Path) -> None:
    """0600 in a folder of 0700, also where a looser file was there before."""
    configuration.path().parent.mkdir(mode=0o700)
    configuration.path().write_text("old")
    configuration.path().chmod(0o644)
    configuration.save(HELD)
    assert stat.S_IMODE(configuration.path().stat().st_mode) == 0o600
    assert stat.S_IMODE(configuration.path().parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("url", "opens"),
    [
        (None, True),
        ("http://api.example", True),
        ("http://api.example/v1/", True),
        ("http://api.example.evil", False),
        ("https://api.example", False),
        ("http://127.0.0.1:8000", False),
    ],
)
def test_a_token_goes_to_its_own_server_only(url: str | None, *, opens: bool) -> None:
    """Another address, given by option or variable, never sees the token of the file."""
    assert (HELD.for_url(url) == HELD.token) is opens


@pytest.mark.parametrize("text", ["not = toml =", "base_url = 'x'", "\xff"])
def test_a_broken_file_is_named(home: Path, text: str) -> None:
    """What cannot be read is an error with the file's name and the way out."""
    configuration.path().parent.mkdir()
    configuration.path().write_bytes(text.encode("latin-1"))
    with pytest.raises(click.ClickException, match=r"client\.toml cannot be read.*gridline setup --apply"):
        configuration.load()


def test_without_any_token_the_way_to_one_is_said(home: Path) -> None:
    """A command without a token is a usage error that names setup; with the file's token for elsewhere, also whose it is."""
    done = CliRunner().invoke(main, ["balance"])
    assert done.exit_code == 2
    assert "gridline setup --apply" in done.output
    configuration.save(HELD)
    done = CliRunner().invoke(main, ["balance", "--url", "http://127.0.0.1:1"])
    assert done.exit_code == 2
    assert HELD.base_url in done.output
    assert HELD.token not in done.output
