"""Secrets of the stack."""

import base64
import stat
from pathlib import Path

from gridline.operate import secrets
from gridline.settings import Settings


def mode(path: Path) -> int:
    """A path's permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_made_once_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    """A second start finds the first one's secrets; the folder is 0700, each file 0600."""
    config = Settings(state_dir=tmp_path)
    secrets.make(config)
    first = {path.name: path.read_text() for path in config.secrets_dir.iterdir()}
    secrets.make(config)
    assert {path.name: path.read_text() for path in config.secrets_dir.iterdir()} == first
    assert set(first) == set(secrets.MADE)
    assert len(set(first.values())) == len(first)
    assert all(len(value) >= 32 for value in first.values())
    assert mode(config.secrets_dir) == 0o700
    assert {mode(path) for path in config.secrets_dir.iterdir()} == {0o600}


def test_an_empty_secret_is_made_anew(tmp_path: Path) -> None:
    """A file that a full disk left empty never becomes a secret."""
    config = Settings(state_dir=tmp_path)
    secrets.make(config)
    (config.secrets_dir / "token_pepper").write_text("")
    secrets.make(config)
    assert len(config.secret("token_pepper")) >= 32


def test_the_fernet_key_is_one(tmp_path: Path) -> None:
    """Airflow takes 32 bytes in URL-safe base64."""
    config = Settings(state_dir=tmp_path)
    secrets.make(config)
    assert len(base64.urlsafe_b64decode(config.secret(secrets.AIRFLOW_FERNET_KEY))) == 32
