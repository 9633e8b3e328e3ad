"""JSON logs: one object a line on stderr, with request, batch and partition ids. Knows no request or result body.

Prompts and results must never be passed to a logger. Tokens and passwords that slip into a message all the
same (an address, an exception's text) are blotted out here, in the one place every line goes through.
"""

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType

from gridline.settings import settings

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
BATCH_ID: ContextVar[str | None] = ContextVar("batch_id", default=None)
PARTITION: ContextVar[int | None] = ContextVar("partition", default=None)

TEXT_CHARS_MAX = 8_000
"""A message or a traceback beyond this is cut, so that one line never fills a disk."""

_SECRETS = (
    (re.compile(r"gl_(live|test|session)_[0-9A-Za-z_-]+"), r"gl_\1_[redacted]"),
    (re.compile(r"whsec_[0-9A-Za-z+/=]+"), "whsec_[redacted]"),
    # A JSON web token: its first two parts are objects.
    (re.compile(r"\beyJ[0-9A-Za-z_-]+\.eyJ[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*"), "[redacted]"),
    (re.compile(r"(?i)\b(bearer|basic) +[^\s\"',]+"), r"\1 [redacted]"),
    (re.compile(r"(\w://[^:/@\s]+):[^@\s]+@"), r"\1:[redacted]@"),
    (
        re.compile(r"(?i)(\b\w*(?:password|secret|api_key|pepper)\"?'?\s*[=:]\s*[\"']?)[^\s\"',;&}]+"),
        r"\1[redacted]",
    ),
)
# What every one of them needs somewhere: most texts have none of it, and looking once costs a tenth.
_SUSPICIOUS = re.compile(r"(?i)gl_|whsec_|eyj|bearer|basic|://|password|secret|api_key|pepper")
# Routes, methods and ids come again with every request.
_CLEAN: set[str] = set()
_CLEAN_MAX, _CLEAN_CHARS_MAX = 1_000, 64
_JSON = json.JSONEncoder(ensure_ascii=False)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_CHATTY = ("httpx", "httpcore", "waitress.queue", "urllib3", "alembic.runtime.migration")


def redacted(text: str) -> str:
    """The text without tokens, authorization headers, passwords in addresses, and ``password=`` values."""
    if text in _CLEAN:
        return text
    if not _SUSPICIOUS.search(text):
        if len(_CLEAN) < _CLEAN_MAX and len(text) <= _CLEAN_CHARS_MAX:
            _CLEAN.add(text)
        return text
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


@contextmanager
def bound(
    *, request_id: str | None = None, batch_id: str | None = None, partition: int | None = None
) -> Iterator[None]:
    """Put these ids on every line that is logged inside; ids left out keep what they had outside."""
    given = [(REQUEST_ID, request_id), (BATCH_ID, batch_id), (PARTITION, partition)]
    tokens = [(variable, variable.set(value)) for variable, value in given if value is not None]  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for variable, token in reversed(tokens):
            variable.reset(token)


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object: at, level, program, logger, message, ids, extras, error."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON, never more, whatever the message holds."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "program": self._program,
            "logger": record.name,
            "message": _cut(redacted(record.getMessage())),
        }
        ids = {"request_id": REQUEST_ID.get(), "batch_id": BATCH_ID.get(), "partition": PARTITION.get()}
        line |= {name: value for name, value in ids.items() if value is not None}
        for name, value in vars(record).items():
            if name not in _STANDARD and not name.startswith("_"):
                line[name] = value if isinstance(value, int | None) else _cut(redacted(str(value)))
        if record.exc_info:
            line["error"] = _cut(redacted(self.formatException(record.exc_info)))
        return _JSON.encode(line)


def configure(program: str) -> None:
    """Send every log line of this process to stderr as JSON, at ``GRIDLINE_LOG_LEVEL``.

    Call it once, first thing in a program's main; never in a library or an Airflow task (Airflow keeps its own logs).
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(program))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings().log_level.upper())
    logging.captureWarnings(capture=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    sys.excepthook = _log_uncaught


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    logging.getLogger("gridline").critical("Uncaught error, the process ends.", exc_info=(kind, error, trace))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else text[:TEXT_CHARS_MAX] + "… [cut]"
