"""Loads a dialect: base paths, endpoints, windows, caps and the name of its extension. Holds no rules."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gridline import limits
from gridline.errors import SettingInvalid
from gridline.settings import settings

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Profile:
    """One dialect of the API."""

    name: str
    base_paths: tuple[str, ...]
    endpoints: tuple[str, ...]
    windows: tuple[str, ...]
    file_bytes_max: int
    file_lines_max: int
    extension: str


@cache
def load(name: str) -> Profile:
    """The dialect in the file ``<name>.toml`` of this folder.

    Raises:
        SettingInvalid: no such file, or a figure above what the platform bears.
    """
    path = FOLDER / f"{name}.toml"
    if not name.isidentifier() or not path.is_file():
        known = ", ".join(sorted(one.stem for one in FOLDER.glob("*.toml")))
        raise SettingInvalid(f"There is no profile {name!r}. GRIDLINE_PROFILE is one of: {known}.")
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    values: dict[str, Any] = {
        key: tuple(one) if isinstance(one, list) else one for key, one in entries.items()
    }
    profile = Profile(**values)
    unknown = [window for window in profile.windows if window not in limits.WINDOW_SECONDS]
    if (
        unknown
        or profile.file_bytes_max > limits.FILE_BYTES_MAX
        or profile.file_lines_max > limits.FILE_LINES_MAX
    ):
        raise SettingInvalid(f"Profile {name!r} goes beyond gridline/limits.py.")
    return profile


def current() -> Profile:
    """The dialect that this platform speaks (``GRIDLINE_PROFILE``)."""
    return load(settings().profile)
