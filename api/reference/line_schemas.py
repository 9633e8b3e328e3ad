"""The lines of an input, for generating types: each API's keys and ranges, as gridline.lines reads them."""

from collections.abc import Callable

from api.reference import message_schemas, response_schemas
from api.reference.shapes import (
    MODEL,
    Schema,
    choice,
    constant,
    flag,
    listed,
    nullable,
    number,
    request,
    see,
    text,
    whole,
)
from gridline import limits
from gridline.lines import chat, conversation, embeddings, endpoints, requests
from gridline.profiles.profile import Profile


def schemas(profile: Profile) -> dict[str, Schema]:
    """Components by name, for the dialect's endpoints."""
    known: dict[str, Schema] = {
        "InputLine": {
            "description": "One request: a line of an input. All lines of a file go to one endpoint and one model.",
            "oneOf": [see(f"{_KINDS[endpoint][0]}Line") for endpoint in profile.endpoints],
        }
    }
    for endpoint in profile.endpoints:
        kind, bodies = _KINDS[endpoint]
        known |= {f"{kind}Line": _line(endpoint, f"{kind}Body"), **bodies()}
    return known


def _chat_bodies() -> dict[str, Schema]:
    return {
        "ChatBody": _chat_body(),
        "ChatMessage": _message(),
        "ResponseFormat": _response_format(),
    }


def _embedding_bodies() -> dict[str, Schema]:
    return {"EmbeddingBody": _embedding_body()}


def custom_id() -> Schema:
    """What a line is told apart by."""
    return text(
        "Yours, unique in the file: match results by it. No control characters.",
        "a-1",
        minLength=1,
        maxLength=limits.CUSTOM_ID_CHARS_MAX,
    )


def _line(endpoint: str, body: str) -> Schema:
    keys = {
        "custom_id": custom_id(),
        "method": constant("POST", "Always `POST`."),
        "url": constant(endpoint, "The batch's endpoint."),
        "body": see(body),
    }
    return request(f"A request to `{endpoint}`.", keys, required=requests.KEYS)


def _chat_body() -> Schema:
    most = limits.OUTPUT_TOKENS_PER_LINE_MAX
    size = "The most tokens to write. Left out: as many as there is room for."
    optional = {
        "max_tokens": whole(size, 50, least=1, most=most),
        "max_completion_tokens": whole(f"{size} The newer name: send one of them.", 50, least=1, most=most),
        "temperature": number("Randomness; 0 takes the likeliest token.", 0.7, minimum=0, maximum=2),
        "top_p": number("Sample from this share of probability.", 0.9, exclusiveMinimum=0, maximum=1),
        "n": whole("Answers to one prompt; each is charged.", 1, least=1, most=limits.CHOICES_PER_LINE_MAX),
        "stop": {
            "description": "Texts that end the answer.",
            "anyOf": [
                text("One.", "END", minLength=1),
                listed(
                    text("One of several.", "END", minLength=1),
                    "Several.",
                    least=1,
                    most=limits.STOP_SEQUENCES_MAX,
                ),
            ],
        },
        "presence_penalty": number("Against what was said at all.", 0, minimum=-2, maximum=2),
        "frequency_penalty": number("Against what was said often.", 0, minimum=-2, maximum=2),
        "seed": whole("Best effort.", 7, least=-chat.INT64_MAX - 1, most=chat.INT64_MAX),
        "logprobs": flag("Whether to answer with the tokens' probabilities.", example=False),
        "top_logprobs": whole(
            "How many tokens beside the chosen one; needs `logprobs`.", 0, most=limits.TOP_LOGPROBS_MAX
        ),
        "response_format": see("ResponseFormat"),
        **_ignored(),
    }
    keys = {
        "model": text("A model for chat.", MODEL),
        "messages": listed(see("ChatMessage"), "The conversation.", least=1),
        **{name: nullable(schema) for name, schema in optional.items()},
    }
    return request(
        "What is asked of a chat model. Null counts as left out.", keys, required=("model", "messages")
    )


def _ignored() -> dict[str, Schema]:
    return {
        "user": text("Taken, and not used.", "customer-7"),
        "stream": constant(value=False, meaning="A batch does not stream."),
        "store": constant(value=False, meaning="A batch's answers are in its files."),
    }


def _message() -> Schema:
    part = request(
        "A piece of text.",
        {"type": constant("text", "Always `text`."), "text": text("The piece.", "Hello")},
        required=("type", "text"),
    )
    keys = {
        "role": choice("Who speaks.", conversation.ROLES, "user"),
        "content": {
            "description": "What is said: text.",
            "anyOf": [text("As one text.", "Hello"), listed(part, "In pieces.", least=1)],
        },
        "name": nullable(text("The speaker's name.", "Alice")),
    }
    return request("One message.", keys, required=("role", "content"))


def _response_format() -> Schema:
    named = request(
        "A named JSON Schema.",
        {
            "name": text("Its name.", "city", pattern="^[a-zA-Z0-9_-]{1,64}$"),
            "schema": {
                "type": "object",
                "description": f"The schema, at most {limits.SCHEMA_BYTES_MAX:,} bytes; counts in it at most "
                f"{limits.SCHEMA_COUNT_MAX:,}. Bound what recurs, and set `max_tokens`.",
                "examples": [{"type": "object", "properties": {"name": {"type": "string"}}}],
            },
            "strict": nullable(flag("Taken: every schema is held to.", example=True)),
            "description": nullable(text("What it is for.", "A city.")),
        },
        required=("name", "schema"),
    )
    return {
        "description": "What the answer must be. One that stops by itself and is not that is not charged.",
        "oneOf": [
            request("Anything.", {"type": constant("text", "Text.")}, required=("type",)),
            request("A JSON object.", {"type": constant("json_object", "JSON.")}, required=("type",)),
            request(
                "JSON that fits a schema.",
                {"type": constant("json_schema", "JSON by a schema."), "json_schema": named},
                required=("type", "json_schema"),
            ),
        ],
    }


def _embedding_body() -> Schema:
    most = limits.EMBEDDING_INPUTS_PER_LINE_MAX
    token_ids = listed(whole("A token id.", 101), "Token ids of the model.", least=1)
    keys = {
        "model": text("A model for embeddings.", "all-minilm-l6-v2"),
        "input": {
            "description": f"One input, or up to {most:,}; none of them empty.",
            "anyOf": [
                text("A text.", "Hello", minLength=1),
                listed(text("A text.", "Hello", minLength=1), "Texts.", least=1, most=most),
                token_ids,
                listed(token_ids, "Inputs as token ids.", least=1, most=most),
            ],
        },
        "encoding_format": nullable(choice("How the numbers come.", embeddings.FORMATS)),
        "dimensions": nullable(whole("The model's own number only.", 384, least=1)),
        **{name: nullable(schema) for name, schema in _ignored().items()},
    }
    return request("What is to be embedded. Null counts as left out.", keys, required=("model", "input"))


_KINDS: dict[str, tuple[str, Callable[[], dict[str, Schema]]]] = {
    endpoints.CHAT: ("Chat", _chat_bodies),
    endpoints.EMBEDDINGS: ("Embedding", _embedding_bodies),
    endpoints.RESPONSES: ("Response", response_schemas.bodies),
    endpoints.MESSAGES: ("Message", message_schemas.bodies),
}
"""Endpoint to what its components' names begin with, and the components of its bodies."""
