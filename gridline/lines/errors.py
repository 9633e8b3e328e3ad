"""What can be wrong with a line, and with the model files that lines are measured by."""

from dataclasses import asdict, dataclass
from typing import Any

from gridline.errors import InvalidRequest, Unavailable


class LineRefused(InvalidRequest):
    """Raised where a line breaks a rule; the file then fails as a whole, with this in its list of errors."""

    default_code = "invalid_request"


class PromptRefused(InvalidRequest):
    """Raised where a line is well formed but its model cannot take it; only this line becomes an error line."""

    default_code = "invalid_request"


class ModelNotPrepared(Unavailable):
    """Raised when this machine lacks the tokenizer of a model that lines name."""


class JudgeUnavailable(Unavailable):
    """Raised when the process that judges JSON schemas does not start on this machine."""


@dataclass(frozen=True)
class LineError:
    """One entry of a batch's ``errors.data``."""

    code: str
    message: str
    param: str | None
    line: int | None
    """Physical line of the file, from 1; None where it concerns the file."""

    def as_dict(self) -> dict[str, Any]:
        """The entry as OpenAI's BatchError."""
        return asdict(self)
