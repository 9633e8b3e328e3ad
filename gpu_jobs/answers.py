"""Turns what an engine answered into a result row: the API's keys only, our ids, strict JSON.

A line whose structured output is not the JSON asked for gets status 400: like other 4xx it is the line's own
outcome and nothing of ours failed; its code tells it apart. It is not billed.
"""

import json
from dataclasses import dataclass
from typing import Any

from gpu_jobs import bodies, structure
from gpu_jobs.bodies import UNUSABLE
from gpu_jobs.partition import Line, Spec
from gridline import ids
from gridline.lines.segments import ResultRow

ERROR_CHARS_MAX = 2_000
OVER_CONTEXT = ("maximum context length", "maximum model length", "longer than the maximum", "max_model_len")


class AnswerUnusable(Exception):
    """Raised when an answer with status 200 is not what the endpoint promises: the engine's fault."""


@dataclass(frozen=True)
class Answerer:
    """Makes result rows for one partition's lines."""

    spec: Spec

    def request_id(self, line: Line) -> str:
        """Ours, one a line: lines with equal custom_ids, in any batches, never meet."""
        return ids.derived("request", self.spec.batch_id, line.line)

    def model(self, line: Line) -> str:
        """The model that the line names: the partition's base, or one of its adapters."""
        base = str(self.spec.model["id"])
        return str(json.loads(line.body)["model"]) if self.spec.adapters else base

    def delivered(self, line: Line, data: bytes) -> ResultRow:
        """The row of an answer with status 200.

        Raises:
            AnswerUnusable: it is no JSON, not of the endpoint's shape, holds a number that JSON lacks, or its usage
                does not add up.
        """
        request = json.loads(line.body)
        try:
            return self._read(line, request, data)
        except UNUSABLE as error:
            raise AnswerUnusable from error

    def _read(self, line: Line, request: dict[str, Any], data: bytes) -> ResultRow:
        answer = json.loads(data, parse_constant=structure.refused_constant)
        name = self.request_id(line).removeprefix(ids.PREFIXES["request"])
        made = bodies.OF_ENDPOINT[self.spec.endpoint](answer, request, name)
        fault = structure.fault_of(request, made.ended)
        if fault:
            return self.refused(line, 400, "structured_output_invalid", fault)
        return self._row(line, 200, made.body | {"model": request["model"]}, code=None, tokens=made.tokens)

    def refused(self, line: Line, status: int, code: str, message: str) -> ResultRow:
        """The row of a line that the engine or we refused; not billed."""
        kind = "server_error" if code == "server_error" else "invalid_request_error"
        error = {"message": message[:ERROR_CHARS_MAX], "type": kind, "param": None, "code": code}
        return self._row(line, status, {"error": error}, code=code, tokens=(0, 0))

    def engine_refused(self, line: Line, data: bytes) -> ResultRow:
        """The row of an answer with status 400: the request is at fault."""
        message = _engine_message(data)
        code = "context_length_exceeded" if any(one in message for one in OVER_CONTEXT) else "invalid_request"
        return self.refused(line, 400, code, message)

    def failed(self, line: Line, why: str) -> ResultRow:
        """The row of a line that we could not get an answer for."""
        return self.refused(
            line, 500, "server_error", f"{why} This request is not charged; others are not affected."
        )

    def _row(
        self, line: Line, status: int, body: dict[str, Any], *, code: str | None, tokens: tuple[int, int]
    ) -> ResultRow:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return ResultRow(
            line=line.line,
            custom_id=line.custom_id,
            status_code=status,
            request_id=self.request_id(line),
            # A lone surrogate, which no UTF-8 file can hold, becomes a question mark.
            body=text.encode("utf-8", "replace").decode(),
            code=code,
            model=self.model(line),
            input_tokens=tokens[0],
            output_tokens=tokens[1],
        )


def _engine_message(data: bytes) -> str:
    try:
        error = json.loads(data)
        return str(error["error"]["message"])
    except UNUSABLE:
        return "The engine refused the request."
