"""What a batch is made with when the command line leaves it out, on platforms of any dialect."""

import json
from pathlib import Path

import click
import httpx
import pytest

from gridline.cli.sending import endpoint_of, window_of
from gridline.client import Client

PLATFORM = {
    "base_paths": ["/v1"],
    "endpoints": ["/v1/responses", "/v1/messages"],
    "completion_windows": ["72h"],
    "file_bytes_max": 1,
    "file_requests_max": 1,
}


@pytest.fixture
def client() -> Client:
    """A client of a platform that takes two endpoints and one window."""
    return Client(
        "http://api", "token", transport=httpx.MockTransport(lambda _: httpx.Response(200, json=PLATFORM))
    )


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file whose first line goes to messages."""
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"url": "/v1/messages"}) + "\n")
    return str(path)


def test_the_first_line_says_the_endpoint(client: Client, file: str) -> None:
    """Where the platform takes it; one that was asked for goes first."""
    assert endpoint_of(client, file, None) == "/v1/messages"
    assert endpoint_of(client, file, "/v1/responses") == "/v1/responses"


def test_an_endpoint_that_the_platform_lacks(client: Client, file: str) -> None:
    """The refusal comes before anything is uploaded, and lists what the platform takes."""
    with pytest.raises(click.UsageError, match=r"--endpoint names no .* /v1/responses or /v1/messages"):
        endpoint_of(client, file, "/v1/embeddings")
    Path(file).write_text("{}\n")
    with pytest.raises(click.UsageError, match="The first line"):
        endpoint_of(client, file, None)


def test_the_window_is_the_platforms_first(client: Client) -> None:
    """Unless one was asked for that it has."""
    assert window_of(client, None) == window_of(client, "72h") == "72h"
    with pytest.raises(click.UsageError, match="72h"):
        window_of(client, "24h")
