"""Turns what an engine answered into a result row: OpenAI's keys only, our ids, strict JSON.

A line whose structured output is not the JSON asked for gets status 400: like other 4xx it is the line's own
outcome and nothing of ours failed; its code tells it apart. It is not billed.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from gpu_jobs.partition import Line, Spec
from gridline import ids
from gridline.lines.segments import ResultRow

CHAT = "/v1/chat/completions"
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

    def delivered(self, line: Line, data: bytes) -> ResultRow:
        """The row of an answer with status 200.

        Raises:
            AnswerUnusable: it is no JSON, not of the endpoint's shape, or holds a number that JSON lacks.
        """
        request = json.loads(line.body)
        try:
            answer = json.loads(data, parse_constant=_refused_constant)
            body = _chat(answer) if self.spec.endpoint == CHAT else _embeddings(answer, request)
            tokens = _tokens(body["usage"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise AnswerUnusable from error
        body["model"] = request["model"]
        if self.spec.endpoint == CHAT:
            body["id"] = "chatcmpl-" + self.request_id(line).removeprefix(ids.PREFIXES["request"])
            fault = _structure_fault(request, body["choices"])
            if fault:
                return self.refused(line, 400, "structured_output_invalid", fault)
        return self._row(line, 200, body, code=None, tokens=tokens)

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
            model=self.spec.model["id"],
            input_tokens=tokens[0],
            output_tokens=tokens[1],
        )


def _chat(answer: dict[str, Any]) -> dict[str, Any]:
    usage = answer["usage"]
    return {
        "id": "",
        "object": "chat.completion",
        "created": int(answer["created"]),
        "model": "",
        "choices": [_choice(one) for one in answer["choices"]],
        "usage": {
            "prompt_tokens": usage["prompt_tokens"],
            "completion_tokens": usage["completion_tokens"],
            "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
            "prompt_tokens_details": {
                "cached_tokens": (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            },
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    if choice["finish_reason"] not in {"stop", "length"}:
        # "abort" and the like: the engine gave up in the middle.
        raise ValueError(choice["finish_reason"])
    content = choice["message"]["content"]
    return {
        "index": int(choice["index"]),
        "message": {"role": "assistant", "content": "" if content is None else str(content), "refusal": None},
        "logprobs": _logprobs(choice.get("logprobs")),
        "finish_reason": choice["finish_reason"],
    }


def _logprobs(logprobs: dict[str, Any] | None) -> dict[str, Any] | None:
    if logprobs is None:
        return None
    content = [
        _logprob(token) | {"top_logprobs": [_logprob(one) for one in token.get("top_logprobs") or ()]}
        for token in logprobs["content"] or ()
    ]
    return {"content": content, "refusal": None}


def _logprob(token: dict[str, Any]) -> dict[str, Any]:
    return {"token": str(token["token"]), "logprob": float(token["logprob"]), "bytes": token.get("bytes")}


def _embeddings(answer: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    data = sorted(answer["data"], key=lambda one: int(one["index"]))
    if [one["index"] for one in data] != list(range(_inputs(request["input"]))):
        raise ValueError(len(data))
    usage = dict.fromkeys(("prompt_tokens", "total_tokens"), answer["usage"]["prompt_tokens"])
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": one["index"], "embedding": one["embedding"]} for one in data
        ],
        "model": "",
        "usage": usage,
    }


def _inputs(given: Any) -> int:
    """How many vectors an input asks for: a text or one list of token ids is one."""
    return 1 if isinstance(given, str) or (given and isinstance(given[0], int)) else len(given)


def _tokens(usage: dict[str, Any]) -> tuple[int, int]:
    tokens = (usage["prompt_tokens"], usage.get("completion_tokens", 0))
    if not all(isinstance(one, int) and one >= 0 for one in tokens):
        raise ValueError(tokens)
    return tokens


def _structure_fault(request: dict[str, Any], choices: list[dict[str, Any]]) -> str | None:
    """Why an answer that stopped by itself is not the JSON asked for; one cut at max_tokens is delivered."""
    wanted = request.get("response_format") or {}
    if wanted.get("type") not in {"json_object", "json_schema"}:
        return None
    schema = wanted["json_schema"].get("schema") if wanted["type"] == "json_schema" else {"type": "object"}
    for choice in choices:
        if choice["finish_reason"] == "stop":
            try:
                value = json.loads(choice["message"]["content"], parse_constant=_refused_constant)
            except (ValueError, RecursionError):
                return "The model's answer is not valid JSON. This request is not charged."
            if not _fits(value, schema):
                return "The model's answer does not match the schema asked for. This request is not charged."
    return None


def _fits(value: Any, schema: Any) -> bool:
    try:
        return jsonschema_rs.validator_for(schema, retriever=_refused_reference).is_valid(value)
    except ValueError:
        # A schema that cannot be judged here was taken by validation and by the engine: theirs is the word.
        return True


def _refused_reference(address: str) -> Any:
    raise ValueError(f"schemas may not refer to other documents: {address}")


def _refused_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number: {math.nan}")


def _engine_message(data: bytes) -> str:
    try:
        error = json.loads(data)
        return str(error["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "The engine refused the request."
