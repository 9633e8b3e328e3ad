"""What a service takes: a platform of ours says so itself; any other one is held to what OpenAI promises."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from gridline.errors import SettingInvalid
from gridline.profiles import profile

PLATFORM = "/gridline/v1/platform"


@dataclass(frozen=True)
class Dialect:
    """What differs between the services that the suite can act on."""

    name: str = ""
    """As the platform calls it; "" where it is not one of ours."""
    endpoints: tuple[str, ...] = ("/v1/chat/completions", "/v1/embeddings")
    windows: tuple[str, ...] = ("24h",)
    file_bytes_max: int = 200_000_000
    file_requests_max: int = 50_000
    storing_fails: str = "file"
    """What fails where a line asks for a stored response: its whole file, or the line alone."""
    capped: bool = False
    """Whether no result file is kept longer than the input that it comes from."""


def spoken_at(base_url: str) -> Dialect:
    """The dialect of the service with this base URL."""
    host = urlsplit(base_url)._replace(path="", query="", fragment="").geturl()
    answer = httpx.get(f"{host}{PLATFORM}", timeout=60)
    if answer.status_code != 200 or "json" not in answer.headers.get("content-type", ""):
        return Dialect()
    told = answer.json()
    return Dialect(
        told["dialect"],
        tuple(told["endpoints"]),
        tuple(told["completion_windows"]),
        told["file_bytes_max"],
        told["file_requests_max"],
        *_written(told["dialect"]),
    )


def _written(name: str) -> tuple[str, bool]:
    """What no program needs to be told stands in the dialect's file, if it is here."""
    try:
        known = profile.load(name)
    except SettingInvalid:
        return Dialect.storing_fails, Dialect.capped
    return known.storing_fails, known.retention_by_account
