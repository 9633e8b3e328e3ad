"""The client's configuration file: where the API is and the token for it, as `gridline setup --apply` left them."""

import json
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import click

from gridline.client.answers import split

HEAD = "# Written by gridline setup. Whoever can read this file can use your account.\n"


@dataclass(frozen=True)
class Configuration:
    """What the file holds: the API's base URL, and a token of an account there."""

    base_url: str
    token: str = field(repr=False)

    def for_url(self, base_url: str | None) -> str | None:
        """The token for calls to that URL (None: the file's own); never for another server than the token is of."""
        if base_url is None or split(base_url)[0] == split(self.base_url)[0]:
            return self.token
        return None


def path() -> Path:
    """Where the file is, in the folder that the system keeps for such files."""
    return Path(click.get_app_dir("gridline")) / "client.toml"


def load() -> Configuration | None:
    """What the file holds; None where there is none.

    Raises:
        click.ClickException: it cannot be read.
    """
    place = path()
    try:
        held = tomllib.loads(place.read_text(encoding="utf-8"))
        return Configuration(str(held["base_url"]), str(held["token"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        raise click.ClickException(
            f"{place} cannot be read. Delete it, then run: gridline setup --apply"
        ) from error


def save(configuration: Configuration) -> None:
    """Write the file whole or not at all, for this user alone (mode 0600) from its first byte on.

    Raises:
        click.ClickException: it cannot be written.
    """
    place = path()
    # A JSON string is a TOML string.
    lines = [
        f"{name} = {json.dumps(value)}\n"
        for name, value in (("base_url", configuration.base_url), ("token", configuration.token))
    ]
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        beside.unlink(missing_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(HEAD + "".join(lines))
        beside.replace(place)
    except OSError as error:
        raise click.ClickException(f"{place} cannot be written: {error.strerror}.") from error
