"""Secrets that the stack needs, made once, one file each (0600) in a folder of mode 0700. Knows no database."""

import base64
import os
import secrets
from collections.abc import Callable

from gridline.settings import Settings

AIRFLOW_ADMIN_USER = "admin"
AIRFLOW_ADMIN_PASSWORD = "airflow_admin_password"  # noqa: S105  # the name of a file
AIRFLOW_SECRET_KEY = "airflow_secret_key"  # noqa: S105  # as above
AIRFLOW_JWT_SECRET = "airflow_jwt_secret"  # noqa: S105  # as above
AIRFLOW_FERNET_KEY = "airflow_fernet_key"


def _text() -> str:
    return secrets.token_urlsafe(32)


def _fernet() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


MADE: dict[str, Callable[[], str]] = {
    "airflow_password": _text,
    AIRFLOW_ADMIN_PASSWORD: _text,
    AIRFLOW_SECRET_KEY: _text,
    AIRFLOW_JWT_SECRET: _text,
    AIRFLOW_FERNET_KEY: _fernet,
    "token_pepper": _text,
}
"""Every secret made here. The database's passwords are made by the cluster that uses them."""


def make(config: Settings) -> None:
    """Make the secrets that are not there yet; those that are stay as they are."""
    folder = config.secrets_dir
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for name, made in MADE.items():
        path = folder / name
        if path.exists() and path.read_text().strip():
            continue
        # Written aside and renamed: a kill in between leaves no empty secret behind.
        aside = folder / f".{name}.{os.getpid()}"
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(made())
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
