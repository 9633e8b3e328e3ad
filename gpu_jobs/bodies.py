"""What an engine's answer is to the customer, endpoint by endpoint: the keys of that API only, and none of the engine's.

Whatever is not of the endpoint's shape raises one of ``UNUSABLE``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from gridline.lines import endpoints

UNUSABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading an answer raises that is not of the endpoint's shape: too deep, or a number too large for JSON, included."""

Json = dict[str, Any]


class Body(NamedTuple):
    """A response body, but for the model's name."""

    body: Json
    tokens: tuple[int, int]
    """Of the input and the output: what is billed."""
    ended: tuple[str, ...] = ()
    """The texts that stopped by themselves, not at the most that they might have."""


def _chat(answer: Json, _request: Json, name: str) -> Body:
    usage = answer["usage"]
    tokens = _tokens(usage["prompt_tokens"], usage.get("completion_tokens") or 0, usage)
    choices = [_choice(one) for one in answer["choices"]]
    body = {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": int(answer["created"]),
        "model": "",
        "choices": choices,
        "usage": {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
            "prompt_tokens_details": {
                "cached_tokens": (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            },
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }
    ended = tuple(one["message"]["content"] for one in choices if one["finish_reason"] == "stop")
    return Body(body, tokens, ended)


def _choice(choice: Json) -> Json:
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


def _logprobs(logprobs: Json | None) -> Json | None:
    if logprobs is None:
        return None
    content = [
        _logprob(token) | {"top_logprobs": [_logprob(one) for one in token.get("top_logprobs") or ()]}
        for token in logprobs["content"] or ()
    ]
    return {"content": content, "refusal": None}


def _logprob(token: Json) -> Json:
    return {"token": str(token["token"]), "logprob": float(token["logprob"]), "bytes": token.get("bytes")}


def _embeddings(answer: Json, request: Json, _name: str) -> Body:
    data = sorted(answer["data"], key=lambda one: int(one["index"]))
    if [one["index"] for one in data] != list(range(_inputs(request["input"]))):
        raise ValueError(len(data))
    tokens = _tokens(answer["usage"]["prompt_tokens"], 0, answer["usage"])
    body = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": one["index"], "embedding": one["embedding"]} for one in data
        ],
        "model": "",
        "usage": dict.fromkeys(("prompt_tokens", "total_tokens"), tokens[0]),
    }
    return Body(body, tokens)


def _inputs(given: Any) -> int:
    """How many vectors an input asks for: a text or one list of token ids is one."""
    return 1 if isinstance(given, str) or (given and isinstance(given[0], int)) else len(given)


def _responses(answer: Json, request: Json, name: str) -> Body:
    status, usage = answer["status"], answer["usage"]
    if status not in {"completed", "incomplete"}:
        raise ValueError(status)
    tokens = _tokens(usage["input_tokens"], usage["output_tokens"], usage)
    text = "".join(_text(item["content"], "output_text") for item in _all(answer["output"], "message"))
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    message = {
        "id": f"msg_{name}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": [part],
    }
    body = {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": int(answer["created_at"]),
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "model": "",
        "output": [message],
        "usage": {
            "input_tokens": tokens[0],
            "input_tokens_details": {
                "cached_tokens": (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0,
                "cache_write_tokens": 0,
            },
            "output_tokens": tokens[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(tokens),
        },
        **_asked(answer, request),
    }
    return Body(body, tokens, (text,) if status == "completed" else ())


def _asked(answer: Json, request: Json) -> Json:
    """What a response repeats of its request, and what no request of a batch can ask for."""
    return {
        "instructions": request.get("instructions"),
        "max_output_tokens": request.get("max_output_tokens"),
        "temperature": float(answer["temperature"]),
        "top_p": float(answer["top_p"]),
        "text": request.get("text") or {"format": {"type": "text"}},
        "metadata": request.get("metadata") or {},
        "user": request.get("user"),
        "truncation": "disabled",
        "reasoning": {"effort": None, "summary": None},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "background": False,
        "store": False,
        "previous_response_id": None,
    }


def _messages(answer: Json, _request: Json, name: str) -> Body:
    reason, usage = answer["stop_reason"], answer["usage"]
    if reason not in {"end_turn", "max_tokens", "stop_sequence"}:
        raise ValueError(reason)
    # The engine counts what its cache held apart; here every token of the prompt costs the same.
    cached = [usage.get(key) or 0 for key in ("cache_read_input_tokens", "cache_creation_input_tokens")]
    tokens = _tokens(usage["input_tokens"] + sum(cached), usage["output_tokens"], {})
    text = _text(answer["content"], "text")
    body = {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": "",
        "content": [{"type": "text", "text": text}],
        "stop_reason": reason,
        "stop_sequence": answer.get("stop_sequence"),
        "usage": {
            "input_tokens": tokens[0],
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": tokens[1],
        },
    }
    return Body(body, tokens)


def _text(parts: list[Json], kind: str) -> str:
    return "".join(str(part["text"]) for part in _all(parts, kind))


def _all(items: list[Json], kind: str) -> list[Json]:
    """The items, all of them of this type: nothing else was asked for."""
    if any(one["type"] != kind for one in items):
        raise ValueError(kind)
    return items


def _tokens(given: Any, written: Any, usage: Json) -> tuple[int, int]:
    """What is billed: whole numbers that the usage's total agrees with."""
    if not all(type(one) is int and one >= 0 for one in (given, written)):
        raise ValueError(given, written)
    if usage.get("total_tokens", given + written) != given + written:
        raise ValueError(usage["total_tokens"])
    return given, written


OF_ENDPOINT: dict[str, Callable[[Json, Json, str], Body]] = {
    endpoints.CHAT: _chat,
    endpoints.EMBEDDINGS: _embeddings,
    endpoints.RESPONSES: _responses,
    endpoints.MESSAGES: _messages,
}
"""(the engine's answer, the request, what the body's id ends with) to the body, by endpoint."""
