import json
from typing import Any

import pytest

from gpu_jobs.answers import Answerer, AnswerUnusable
from gpu_jobs.partition import Line, Spec

SPEC = Spec("batch_1", 0, "/v1/chat/completions", {"id": "m"}, "", 600)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ENGINE_CHOICE = {
    "index": 0,
    "message": {"role": "assistant", "content": "hi", "reasoning": None, "annotations": None, "audio": None},
    "logprobs": {
        "content": [
            {
                "token": "hi",
                "logprob": -0.5,
                "bytes": [104, 105],
                "top_logprobs": [{"token": "hi", "logprob": -0.5, "bytes": [104, 105], "rank": 1}],
                "rank": 1,
            }
        ]
    },
    "finish_reason": "stop",
    "stop_reason": None,
    "routed_experts": None,
}
ENGINE_ANSWER = {
    "id": "chatcmpl-engine",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "/models/m",
    "choices": [ENGINE_CHOICE],
    "service_tier": None,
    "system_fingerprint": "vllm-x",
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "prompt_tokens_details": None},
    "metrics": {},
    "kv_transfer_params": None,
}


def line(**body: Any) -> Line:
    return Line(5, "c", json.dumps({"model": "m"} | body), 3)


def chat(content: str | None, finish: str = "stop", **body: Any) -> Any:
    """The row of a chat answer."""
    choice = {"index": 0, "message": {"content": content}, "finish_reason": finish}
    return Answerer(SPEC).delivered(line(**body), json.dumps(ENGINE_ANSWER | {"choices": [choice]}).encode())


def test_chat_holds_openai_keys_only() -> None:
    """A chat answer carries OpenAI's keys, our id, the model asked for, and none of the engine's own."""
    row = Answerer(SPEC).delivered(line(), json.dumps(ENGINE_ANSWER).encode())
    body = json.loads(row.body)
    assert body == {
        "id": "chatcmpl-" + row.request_id.removeprefix("req_"),
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hi", "refusal": None},
                "logprobs": {
                    "content": [
                        {
                            "token": "hi",
                            "logprob": -0.5,
                            "bytes": [104, 105],
                            "top_logprobs": [{"token": "hi", "logprob": -0.5, "bytes": [104, 105]}],
                        }
                    ],
                    "refusal": None,
                },
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }
    assert (row.status_code, row.code, row.input_tokens, row.output_tokens) == (200, None, 3, 4)


@pytest.mark.parametrize("content", ["déjà 😀 \u2028", "a\0b", '"\\', "\ud800 alone"])
def test_any_text_survives(content: str) -> None:
    """Whatever a model says ends in a JSON body that a UTF-8 file can hold."""
    body = json.loads(chat(content).body.encode("utf-8"))
    assert body["choices"][0]["message"]["content"] == content.replace("\ud800", "?")


@pytest.mark.parametrize(
    "change",
    [
        {"choices": None},
        {"choices": [ENGINE_CHOICE | {"finish_reason": "abort"}]},
        {"usage": None},
        {"usage": {"prompt_tokens": -1, "completion_tokens": 1}},
        {"usage": {"prompt_tokens": 1.5, "completion_tokens": 1}},
        {"usage": {"prompt_tokens": True, "completion_tokens": 1}},
        {"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 8}},
        {"created": float("nan")},
    ],
)
def test_unusable_answers(change: dict[str, Any]) -> None:
    """An answer that lacks what the endpoint promises is never delivered."""
    with pytest.raises(AnswerUnusable):
        Answerer(SPEC).delivered(line(), json.dumps(ENGINE_ANSWER | change).encode())


NUMBERS = ("NaN", "-Infinity", "1e999", "-1e999", "9" * 5_000)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("place", ['"created": 1700000000', '"logprob": -0.5', '"prompt_tokens": 3'])
def test_numbers_that_json_lacks(place: str, number: str) -> None:
    """No number that a strict reader would refuse gets into a result, or ends the job, wherever an engine wrote it."""
    data = json.dumps(ENGINE_ANSWER)
    assert place in data
    with pytest.raises(AnswerUnusable):
        Answerer(SPEC).delivered(line(), data.replace(place, f"{place.partition(':')[0]}: {number}").encode())


@pytest.mark.parametrize("number", NUMBERS[:4])
def test_vectors_of_numbers_that_json_lacks(number: str) -> None:
    """Nor as a part of a vector."""
    spec = Spec("batch_1", 0, "/v1/embeddings", {"id": "m"}, "", 600)
    data = f'{{"data": [{{"index": 0, "embedding": [0.5, {number}]}}], "usage": {{"prompt_tokens": 2, "total_tokens": 2}}}}'
    with pytest.raises(AnswerUnusable):
        Answerer(spec).delivered(line(input="a"), data.encode())


def test_an_answer_without_end() -> None:
    """An answer too deep to read is the engine's fault, not the job's end; so is a refusal."""
    deep = b"[" * 100_000
    with pytest.raises(AnswerUnusable):
        Answerer(SPEC).delivered(line(), deep)
    assert Answerer(SPEC).engine_refused(line(), deep).code == "invalid_request"


@pytest.mark.parametrize(
    ("wanted", "content", "finish", "code"),
    [
        ({"type": "json_object"}, '{"a": 1}', "stop", None),
        ({"type": "json_object"}, "[1]", "stop", "structured_output_invalid"),
        ({"type": "json_object"}, '{"a": NaN}', "stop", "structured_output_invalid"),
        ({"type": "json_object"}, '{"a": ', "length", None),
        ({"type": "json_object"}, '{"a": ', "stop", "structured_output_invalid"),
        ({"type": "json_object"}, "[" * 100_000, "stop", "structured_output_invalid"),
        ({"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}, '{"n": 1}', "stop", None),
        (
            {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}},
            '{"n": "1"}',
            "stop",
            "structured_output_invalid",
        ),
        (
            {"type": "json_schema", "json_schema": {"name": "s", "schema": {"$ref": "http://127.0.0.1:9/x"}}},
            '{"n": 1}',
            "stop",
            None,
        ),
        ({"type": "text"}, "no JSON", "stop", None),
    ],
)
def test_structured_output(wanted: dict[str, Any], content: str, finish: str, code: str | None) -> None:
    """Stopped by itself but not the JSON asked for: structured_output_invalid and free; cut short: delivered."""
    row = chat(content, finish, response_format=wanted)
    assert row.code == code
    assert row.status_code == (200 if code is None else 400)
    assert (row.input_tokens, row.output_tokens) == ((3, 4) if code is None else (0, 0))


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
        ("Grammar error: bad", "invalid_request"),
    ],
)
def test_engine_refusals(message: str, code: str) -> None:
    """A refusal says why in OpenAI's error object, with the code that fits."""
    row = Answerer(SPEC).engine_refused(
        line(), json.dumps({"error": {"message": message, "code": 400}}).encode()
    )
    error = json.loads(row.body)["error"]
    assert error == {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    assert (row.code, row.status_code) == (code, 400)


def test_refusal_of_another_shape() -> None:
    """A refusal that is not OpenAI's shape still is an error object."""
    row = Answerer(SPEC).engine_refused(line(), b'{"detail": "There was an error parsing the body"}')
    assert json.loads(row.body)["error"]["message"] == "The engine refused the request."


@pytest.mark.parametrize(
    ("given", "vectors"), [("a", 1), (["a", "b"], 2), ([1, 2, 3], 1), ([[1], [2, 3]], 2)]
)
def test_one_vector_an_input(given: Any, vectors: int) -> None:
    """An embeddings answer has one vector an input, in order, or is not delivered."""
    spec = Spec("batch_1", 0, "/v1/embeddings", {"id": "m"}, "", 600)
    data = [{"index": index, "object": "embedding", "embedding": "AAAA"} for index in range(vectors)]
    answer = {"data": data[::-1], "usage": {"prompt_tokens": 2, "total_tokens": 2, "completion_tokens": 0}}
    row = Answerer(spec).delivered(line(input=given), json.dumps(answer).encode())
    body = json.loads(row.body)
    assert [one["index"] for one in body["data"]] == list(range(vectors))
    assert body["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    assert (row.input_tokens, row.output_tokens) == (2, 0)
    with pytest.raises(AnswerUnusable):
        Answerer(spec).delivered(line(input=given), json.dumps(answer | {"data": data[1:]}).encode())
