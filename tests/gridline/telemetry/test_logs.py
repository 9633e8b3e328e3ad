"""Logs: one JSON object a line, with ids, without secrets."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from gridline.telemetry import logs


class Capture:
    """A logger whose lines can be read back as objects."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        handler = logging.StreamHandler(self.stream)
        handler.setFormatter(logs.JsonFormatter("api"))
        self.logger = logging.Logger("tests.logs")  # noqa: LOG001 - alone, so that no handler of another test sees it
        self.logger.addHandler(handler)

    def only(self) -> dict[str, Any]:
        """The one line that was logged."""
        (line,) = self.stream.getvalue().splitlines()
        parsed: dict[str, Any] = json.loads(line)
        return parsed


@pytest.fixture
def capture() -> Capture:
    return Capture()


def test_a_line_is_one_object_with_program_level_and_time(capture: Capture) -> None:
    """A message with line breaks still makes one line, dated in UTC."""
    capture.logger.warning("two\nlines")
    line = capture.only()
    assert line["message"] == "two\nlines"
    assert (line["program"], line["level"], line["logger"]) == ("api", "WARNING", "tests.logs")
    assert line["at"].endswith("+00:00")


def test_ids_are_on_every_line_inside_and_gone_outside(capture: Capture) -> None:
    """Request, batch and partition ids ride along while bound, partition 0 included."""
    with logs.bound(request_id="req_1"), logs.bound(batch_id="batch_1", partition=0):
        capture.logger.info("inside")
    line = capture.only()
    assert (line["request_id"], line["batch_id"], line["partition"]) == ("req_1", "batch_1", 0)
    assert logs.REQUEST_ID.get() is None
    assert logs.BATCH_ID.get() is None


def test_an_inner_id_gives_way_to_the_outer_one_even_after_an_error() -> None:
    """Leaving by an exception restores what was bound outside."""
    with logs.bound(batch_id="batch_outer"):
        with pytest.raises(RuntimeError), logs.bound(batch_id="batch_inner"):
            raise RuntimeError
        assert logs.BATCH_ID.get() == "batch_outer"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("token gl_live_AbC123xyz was used", "AbC123xyz"),
        ("session gl_session_AbC123xyz was used", "AbC123xyz"),
        ("gl_test_AbC123xyz", "AbC123xyz"),
        ("Authorization: Bearer sk-something-else", "sk-something-else"),
        ("connect postgresql+psycopg://app:hunter2@127.0.0.1/gridline", "hunter2"),
        ("password=hunter2 host=x", "hunter2"),
        ('{"airflow_password": "hunter2"}', "hunter2"),
        ("GRIDLINE_TOKEN_PEPPER=hunter2", "hunter2"),
        ("GRIDLINE_OIDC_CLIENT_SECRET=hunter2", "hunter2"),
        ("got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJodW50ZXIyIn0.c2ln from it", "eyJzdWIi"),
    ],
)
def test_secrets_never_reach_a_line(capture: Capture, text: str, secret: str) -> None:
    """Token formats, authorization headers and passwords are blotted out of message, extras and traceback."""
    error = ValueError(text)
    capture.logger.error("failed with %s", text, extra={"detail": text}, exc_info=error)
    written = capture.stream.getvalue()
    assert secret not in written
    assert written.count("[redacted]") >= 3


def test_ordinary_text_is_left_alone(capture: Capture) -> None:
    """Redaction does not eat ids, addresses without a password, or words like 'token'."""
    text = "batch_abc used 12 tokens at http://127.0.0.1:8000/v1 in gl_live mode"
    capture.logger.info(text)
    assert capture.only()["message"] == text


def test_a_huge_message_is_cut(capture: Capture) -> None:
    """One line stays bounded whatever is logged."""
    capture.logger.info("x" * 1_000_000)
    assert len(capture.stream.getvalue()) < 2 * logs.TEXT_CHARS_MAX


def test_extras_keep_numbers_as_numbers(capture: Capture) -> None:
    """Figures given as extra fields can be summed by whoever reads the logs."""
    capture.logger.info("answered", extra={"status": 200, "route": "/files"})
    line = capture.only()
    assert (line["status"], line["route"]) == (200, "/files")


@pytest.fixture
def untouched_logging() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, sys.excepthook)
    yield
    root.handlers[:], level, sys.excepthook = before
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def test_configure_sends_everything_to_stderr_as_json(
    untouched_logging: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """After configure, an uncaught error is one JSON line too, and stdout stays for data."""
    logs.configure("keeper")
    error = RuntimeError("gl_live_secretsecret")
    sys.excepthook(type(error), error, error.__traceback__)
    out, err = capsys.readouterr()
    line = json.loads(err)
    assert out == ""
    assert (line["program"], line["level"]) == ("keeper", "CRITICAL")
    assert "RuntimeError" in line["error"]
    assert "secretsecret" not in err


def test_what_comes_again_is_redacted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Harmless texts are known by heart, a bounded number of them; what holds a secret never is."""
    monkeypatch.setattr(logs, "_CLEAN", set())
    secret = "Bearer gl_live_abc"
    for _ in range(2):
        assert logs.redacted("/v1/files") == "/v1/files"
        assert logs.redacted(secret) == "Bearer [redacted]"
    assert {"/v1/files"} == logs._CLEAN
    for number in range(3_000):
        assert logs.redacted(f"text {number}") == f"text {number}"
    assert len(logs._CLEAN) <= 1_000
    assert logs.redacted("x" * 100) == "x" * 100
