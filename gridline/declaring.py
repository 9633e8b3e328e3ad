"""How a setting is declared: its default and its meaning, and what the choices are where it is one."""

import os
from dataclasses import field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gridline.errors import SettingInvalid

ROOT = Path(__file__).resolve().parent.parent
LOOPBACK = ("127.0.0.1", "::1", "localhost")
KEPT_FROM_JOBS = (
    "AIRFLOW",
    "_AIRFLOW",
    "GRIDLINE_DATABASE_",
    "GRIDLINE_AIRFLOW_",
    "GRIDLINE_CELERY_",
    "GRIDLINE_TOKEN_",
    "GRIDLINE_SMTP_",
    "GRIDLINE_PASSWORD",
    "GRIDLINE_OIDC_",
)
"""How the names begin of what reaches databases, Airflow, tokens and other programs: no GPU job is given it."""


class SignUp(StrEnum):
    """Whether customers may sign up by themselves."""

    OPEN = "open"
    CLOSED = "closed"


class Executor(StrEnum):
    """Where Airflow's tasks run: in the scheduler's own processes, or in workers on any machine."""

    LOCAL = "local"
    CELERY = "celery"


def setting(default: Any, meaning: str) -> Any:
    """One setting: its default (a value, or a function without arguments) and what it means."""
    if callable(default):
        return field(default_factory=default, metadata={"meaning": meaning})
    return field(default=default, metadata={"meaning": meaning})


def hidden(meaning: str) -> Any:
    """A setting that nobody may read by accident: empty where it is not set, and never shown with the others."""
    return field(default="", repr=False, metadata={"meaning": meaning})


def parsed(name: str, text: str, kind: type) -> Any:
    """The value that a text of the environment stands for.

    Raises:
        SettingInvalid: it is not of the setting's type.
    """
    try:
        return kind(text)
    except ValueError as error:
        wanted = " or ".join(kind) if issubclass(kind, StrEnum) else f"a {kind.__name__}"
        raise SettingInvalid(f"{name} must be {wanted}, got {text!r}.") from error


def default_state_dir() -> Path:
    """Root keeps state in a system folder that the database's own user may enter, others in the clone."""
    if os.geteuid() == 0:
        return Path("/var/lib/gridline") / sha256(str(ROOT).encode()).hexdigest()[:8]
    return ROOT / ".gridline"


def safe_address(url: str) -> bool:
    """Whether what is read there can be believed: https, or plain on this very machine."""
    parts = urlsplit(url)
    plain = parts.scheme == "http" and parts.hostname in LOOPBACK
    return bool(parts.hostname) and (parts.scheme == "https" or plain) and "@" not in parts.netloc


def checked_issuer(url: str) -> str:
    """An OpenID Connect provider's name for itself, which is where its keys are looked up.

    Raises:
        SettingInvalid: not https (nor plain on loopback), or with a query, a fragment or credentials.
    """
    if not safe_address(url) or set(url) & set("?# ") or not url.isascii():
        raise SettingInvalid(
            f"GRIDLINE_OIDC_ISSUER must be an https address without query and credentials, got {url!r}. "
            "Plain http is taken on loopback only."
        )
    return url
