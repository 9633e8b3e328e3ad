"""What can be wrong with a line, and with the model files that lines are measured by."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from gridline.errors import InvalidRequest, Unavailable
from gridline.limits import BATCH_ERROR_BYTES_MAX

PARAM_BYTES_MAX = 200
JSON_CHAR_BYTES_MAX = 12
"""What a character beyond the first 65,536 takes as JSON: two escapes."""


class LineRefused(InvalidRequest):
    """Raised where a line breaks a rule; the file then fails as a whole, with this in its list of errors."""

    default_code = "invalid_request"


class PromptRefused(InvalidRequest):
    """Raised where a line is well formed but its model cannot take it; only this line becomes an error line."""

    default_code = "invalid_request"


class StoringDenied(PromptRefused):
    """Raised where a line asks for a stored response in a dialect in which that is the line's own failure."""

    status = 403
    type = "permission_error"
    default_code = "permission_denied"


class ModelNotPrepared(Unavailable):
    """Raised when this machine lacks the tokenizer of a model that lines name."""


class JudgeUnavailable(Unavailable):
    """Raised when the process that judges JSON schemas does not start on this machine."""


def shortened(text: str, bytes_max: int) -> str:
    """The text cut to so many bytes of JSON, with an ellipsis where it was cut."""
    if len(text) * JSON_CHAR_BYTES_MAX <= bytes_max or len(json.dumps(text)) <= bytes_max:
        return text
    text = text[:bytes_max]
    while len(json.dumps(text)) > bytes_max - JSON_CHAR_BYTES_MAX:
        text = text[: len(text) * 7 // 8]
    return f"{text}…"


def _printable(text: str) -> str:
    """The text with escapes for what no page and no database takes: names of keys may hold any character."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


@dataclass(frozen=True)
class LineError:
    """One entry of a batch's ``errors.data``."""

    code: str
    message: str
    param: str | None
    line: int | None
    """Physical line of the file, from 1; None where it concerns the file."""

    @classmethod
    def of(cls, refusal: LineRefused, line: int | None) -> "LineError":
        """The entry of a refusal, cut so that the list of a whole file stays small, whatever characters are in it."""
        param = refusal.param and shortened(_printable(refusal.param), PARAM_BYTES_MAX)
        whole = cls(str(refusal.code), _printable(refusal.message), param, line)
        room = BATCH_ERROR_BYTES_MAX - len(json.dumps({**whole.as_dict(), "message": ""}))
        return replace(whole, message=shortened(refusal.message, room))

    def as_dict(self) -> dict[str, Any]:
        """The entry as OpenAI's BatchError."""
        return asdict(self)
