"""The lines of output and error files, for generating types."""

from collections.abc import Callable

from api.reference import message_schemas, response_schemas
from api.reference.line_schemas import custom_id
from api.reference.shapes import (
    MODEL,
    Schema,
    choice,
    constant,
    empty,
    identity,
    listed,
    moment,
    nullable,
    number,
    see,
    text,
    thing,
    whole,
)
from gridline.lines import endpoints, results
from gridline.profiles.profile import Profile

CREATED = 1767614400
_RESULT = '{"id": "batch_req_…", "custom_id": "a-1", "response": {"status_code": 200, …}, "error": null}\n'


def schemas(profile: Profile) -> dict[str, Schema]:
    """Components by name, for the dialect's endpoints."""
    known = {
        "OutputLine": _line([_ANSWERS[endpoint][0] for endpoint in profile.endpoints]),
        "ResultLines": {
            "type": "string",
            "description": "Lines that have a result, delivered and failed alike, in the order in which they were done: "
            "JSONL, one `OutputLine` on each line; nothing where nothing was done since the cursor.",
            "contentMediaType": "application/jsonl",
            "examples": [_RESULT],
            "x-lines": see("OutputLine"),
        },
    }
    for endpoint in profile.endpoints:
        known |= _ANSWERS[endpoint][1]()
    return known


def _chat_answers() -> dict[str, Schema]:
    return {"ChatCompletion": _completion(), "ChatLogprobs": _logprobs(), "Logprob": _logprob()}


def _embedding_answers() -> dict[str, Schema]:
    return {"EmbeddingList": _embeddings()}


def _line(bodies: list[str]) -> Schema:
    response = thing(
        "The answer, or the refusal of this one line.",
        {
            "status_code": whole("200 in an output file; 400, 403 or 500 in an error file.", 200),
            "request_id": text(
                "Name it when you write to the operator.", identity("request", "")["examples"][0]
            ),
            "body": {
                "description": "The endpoint's object.",
                "anyOf": [*(see(name) for name in bodies), see("Error")],
            },
        },
    )
    error = thing(
        "Why the line never ran.",
        {
            "code": choice("Why.", sorted(results.NEVER_RUN_CODES)),
            "message": text("Why, for people.", "This request was not run: the batch was cancelled."),
        },
    )
    return thing(
        "One result: a line of an output or error file, in the order of the input. A line that was refused or ran has "
        "a `response`, one that never ran an `error`.",
        {
            "id": identity("line", "The result's id."),
            "custom_id": custom_id(),
            "response": nullable(response),
            "error": empty(error),
        },
    )


def _completion() -> Schema:
    message = thing(
        "The message.",
        {
            "role": constant("assistant", "Always `assistant`."),
            "content": text("The text.", "Hello! How can I help?"),
            "refusal": empty(text("Always null.", "")),
        },
    )
    choices = thing(
        "One answer.",
        {
            "index": whole("Which of the `n`.", 0),
            "message": message,
            "logprobs": nullable(see("ChatLogprobs")) | {"examples": [None]},
            "finish_reason": choice("`length`: cut at `max_tokens`.", ("stop", "length")),
        },
    )
    usage = thing(
        "Its tokens.",
        {
            "prompt_tokens": whole("Of the prompt.", 38),
            "completion_tokens": whole("Of all answers.", 12),
            "total_tokens": whole("Both.", 50),
            "prompt_tokens_details": thing("Of these:", {"cached_tokens": whole("From a cache.", 0)}),
            "completion_tokens_details": thing("Of these:", {"reasoning_tokens": whole("On reasoning.", 0)}),
        },
    )
    return thing(
        "A chat model's answer, with OpenAI's keys only.",
        {
            "id": text("Its id.", "chatcmpl-" + identity("request", "")["examples"][0].removeprefix("req_")),
            "object": constant("chat.completion", "Always `chat.completion`."),
            "created": moment("When it was written.", CREATED),
            "model": text("The model.", MODEL),
            "choices": listed(choices, "The answers."),
            "usage": usage,
        },
    )


def _logprobs() -> Schema:
    beside = listed(see("Logprob"), "The likeliest tokens at this place.")
    content = thing("A token of the answer.", {**_logprob()["properties"], "top_logprobs": beside})
    return thing(
        "How likely each token was.",
        {"content": listed(content, "Token by token."), "refusal": empty(text("Always null.", ""))},
    )


def _logprob() -> Schema:
    return thing(
        "How likely a token was.",
        {
            "token": text("The token.", "Hello"),
            "logprob": number("The logarithm of its probability.", -0.1),
            "bytes": nullable(listed(whole("A byte.", 72, most=255), "Its bytes.")),
        },
    )


def _embeddings() -> Schema:
    one = thing(
        "One embedding.",
        {
            "object": constant("embedding", "Always `embedding`."),
            "index": whole("Which of the inputs.", 0),
            "embedding": {
                "description": "Numbers, or little-endian 32-bit floats in base64, as asked.",
                "anyOf": [
                    listed(number("One number.", 0.1), "As numbers."),
                    text("As base64.", "zczMPQ==", contentEncoding="base64"),
                ],
            },
        },
    )
    return thing(
        "An embedding model's answer.",
        {
            "object": constant("list", "Always `list`."),
            "data": listed(one, "One for each input, in order."),
            "model": text("The model.", "all-minilm-l6-v2"),
            "usage": thing(
                "Its tokens.",
                {"prompt_tokens": whole("Of the inputs.", 3), "total_tokens": whole("The same.", 3)},
            ),
        },
    )


_ANSWERS: dict[str, tuple[str, Callable[[], dict[str, Schema]]]] = {
    endpoints.CHAT: ("ChatCompletion", _chat_answers),
    endpoints.EMBEDDINGS: ("EmbeddingList", _embedding_answers),
    endpoints.RESPONSES: ("Response", response_schemas.answers),
    endpoints.MESSAGES: ("Message", message_schemas.answers),
}
"""Endpoint to the component of its answer, and all components that it is made of."""
