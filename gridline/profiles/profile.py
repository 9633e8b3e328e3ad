"""Loads a dialect: what the files beside this one say of paths, endpoints, windows, caps, prices and the extension.

Holds no rules. A further dialect is a further file: nothing else knows the name of one.
"""

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

from gridline import limits
from gridline.errors import SettingInvalid
from gridline.lines import endpoints
from gridline.settings import settings

FOLDER = Path(__file__).parent
STORING_FAILS = ("file", "line")
FACTS = ("reason", "reason_code", "since", "next_step", "hold", "cost", "error_code")
"""What a batch's extension can say of it."""


@dataclass(frozen=True)
class Profile:
    """One dialect of the API."""

    name: str
    base_paths: tuple[str, ...]
    """Where OpenAI's resources are; the first is the one that pages and documents name."""
    endpoints: tuple[str, ...]
    windows: tuple[str, ...]
    file_bytes_max: int
    file_lines_max: int
    storing_fails: Literal["file", "line"]
    """What fails where a line asks for a stored response: its whole file, or the line alone."""
    price_percent: int
    """What tokens cost, in percent of a model's standard rate."""
    listed_batch_prices: bool
    """Whether a batch price on a model's card goes before the percentage."""
    extension: str
    """The key of the object that rides along on batches and models."""
    batch_facts: tuple[str, ...]
    """What it says on a batch, of FACTS."""
    batch_constants: tuple[tuple[str, str], ...]
    """What it says on every batch alike, as (key, text)."""
    retention_by_account: bool
    """Whether files are kept as long as the account's policy says, instead of the promised figures."""
    request_log_days: int
    """How long the request log keeps each line of an ended batch; 0: there is no log."""


@cache
def load(name: str) -> Profile:
    """The dialect in the file ``<name>.toml`` of this folder.

    Raises:
        SettingInvalid: no such file, a key that is missing or unknown, or a value that this platform does not bear.
    """
    path = FOLDER / f"{name}.toml"
    if not name.isidentifier() or not path.is_file():
        known = ", ".join(sorted(one.stem for one in FOLDER.glob("*.toml")))
        raise SettingInvalid(f"There is no profile {name!r}. GRIDLINE_PROFILE is one of: {known}.")
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    different = entries.keys() ^ {one.name for one in fields(Profile)}
    if different:
        raise SettingInvalid(
            f"Profile {name!r} lacks these keys, or has them and may not: {', '.join(sorted(different))}."
        )
    profile = Profile(**{key: _frozen(one) for key, one in entries.items()})
    problem = _problem_of(profile)
    if problem:
        raise SettingInvalid(f"Profile {name!r}: {problem}")
    return profile


def current() -> Profile:
    """The dialect that this platform speaks (``GRIDLINE_PROFILE``)."""
    return load(settings().profile)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value


def _problem_of(profile: Profile) -> str | None:
    """What this platform cannot bear of it, in a sentence; None when nothing."""
    for what, given, known in (
        ("endpoints", profile.endpoints, endpoints.KNOWN),
        ("windows", profile.windows, tuple(limits.WINDOW_SECONDS)),
        ("batch_facts", profile.batch_facts, FACTS),
        ("storing_fails", (profile.storing_fails,), STORING_FAILS),
    ):
        if not given or not set(given) <= set(known):
            return f"{what} must be among {', '.join(known)}."
    if profile.file_bytes_max > limits.FILE_BYTES_MAX or profile.file_lines_max > limits.FILE_LINES_MAX:
        return "it goes beyond the file limits of gridline/limits.py."
    if not profile.base_paths or profile.price_percent < 1 or profile.request_log_days < 0:
        return "it needs a base path, a price of at least 1 percent, and 0 or more days of a request log."
    return None
