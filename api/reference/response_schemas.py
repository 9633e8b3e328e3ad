"""Lines of `/v1/responses`, in and out: what may be asked, as gridline.lines reads it, and what is answered."""

from api.reference.shapes import (
    MODEL,
    Schema,
    choice,
    constant,
    empty,
    flag,
    identity,
    listed,
    moment,
    nullable,
    number,
    request,
    see,
    text,
    thing,
    whole,
)
from gridline import limits
from gridline.lines import conversation

CREATED = 1767614400
_NAME = identity("request", "")["examples"][0].removeprefix("req_")
_PAIRS = {"type": "object", "additionalProperties": {"type": "string"}, "examples": [{"project": "spring"}]}


def bodies() -> dict[str, Schema]:
    """Components of what is asked."""
    return {
        "ResponseBody": _body(),
        "ResponseMessage": _message(),
        "ResponseText": _text(),
    }


def answers() -> dict[str, Schema]:
    """Components of what is answered."""
    return {"Response": _response()}


def _body() -> Schema:
    optional = {
        "instructions": text("What the model is told before the conversation.", "Answer in French."),
        "max_output_tokens": whole(
            "The most tokens to write. Left out: as many as there is room for.",
            50,
            least=1,
            most=limits.OUTPUT_TOKENS_PER_LINE_MAX,
        ),
        "temperature": number("Randomness; 0 takes the likeliest token.", 0.7, minimum=0, maximum=2),
        "top_p": number("Sample from this share of probability.", 0.9, exclusiveMinimum=0, maximum=1),
        "text": see("ResponseText"),
        "metadata": _PAIRS
        | {
            "description": "Pairs of texts of your own; the answer repeats them.",
            "maxProperties": limits.METADATA_PAIRS_MAX,
            "propertyNames": {"maxLength": limits.METADATA_KEY_CHARS_MAX},
            "additionalProperties": {"type": "string", "maxLength": limits.METADATA_VALUE_CHARS_MAX},
        },
        "user": text("The answer repeats it.", "customer-7"),
        "truncation": constant("disabled", "A prompt that is too long is an error."),
        "stream": constant(value=False, meaning="A batch does not stream."),
        "store": constant(value=False, meaning="A batch's answers are in its files, and nowhere else."),
        "background": constant(value=False, meaning="Every request of a batch is one."),
    }
    keys = {
        "model": text("A model for chat.", MODEL),
        "input": {
            "description": "What is asked.",
            "anyOf": [
                text("As one text of the user's.", "Hello", minLength=1),
                listed(see("ResponseMessage"), "As a conversation.", least=1),
            ],
        },
        **{name: nullable(schema) for name, schema in optional.items()},
        "previous_response_id": _never("Nothing is stored to go on from."),
        "conversation": _never("Nothing is stored to go on from."),
    }
    return request(
        "What is asked of a chat model. Null counts as left out.", keys, required=("model", "input")
    )


def _never(why: str) -> Schema:
    return {"type": "null", "description": f"Null only. {why}"}


def _message() -> Schema:
    parts = [
        request(
            "A piece of text.",
            {"type": constant("input_text", "Of a prompt."), "text": text("The piece.", "Hello")},
            required=("type", "text"),
        ),
        request(
            "A piece of an earlier answer.",
            {
                "type": constant("output_text", "Of an answer."),
                "text": text("The piece.", "Bonjour"),
                "annotations": {"description": "Passed over."},
                "logprobs": {"description": "Passed over."},
            },
            required=("type", "text"),
        ),
    ]
    keys = {
        "type": nullable(constant("message", "Always `message`.")),
        "role": choice("Who speaks.", conversation.ROLES, "user"),
        "content": {
            "description": "What is said: text.",
            "anyOf": [
                text("As one text.", "Hello"),
                {
                    "type": "array",
                    "description": "In pieces.",
                    "items": {"description": "A piece.", "oneOf": parts},
                    "minItems": 1,
                },
            ],
        },
        "id": nullable(text("Of an earlier answer; passed over.", f"msg_{_NAME}")),
        "status": nullable(text("Of an earlier answer; passed over.", "completed")),
    }
    return request("One message.", keys, required=("role", "content"))


def _text() -> Schema:
    named = {
        "type": constant("json_schema", "JSON by a schema."),
        "name": text("Its name.", "city", pattern="^[a-zA-Z0-9_-]{1,64}$"),
        "schema": {
            "type": "object",
            "description": f"The schema, at most {limits.SCHEMA_BYTES_MAX:,} bytes. Bound what recurs, and set "
            "`max_output_tokens`.",
            "examples": [{"type": "object", "properties": {"name": {"type": "string"}}}],
        },
        "strict": nullable(flag("Taken: every schema is held to.", example=True)),
        "description": nullable(text("What it is for.", "A city.")),
    }
    forms = [
        request("Anything.", {"type": constant("text", "Text.")}, required=("type",)),
        request("A JSON object.", {"type": constant("json_object", "JSON.")}, required=("type",)),
        request("JSON that fits a schema.", named, required=("type", "name", "schema")),
    ]
    form = {"description": "One that stops by itself and is not that is not charged.", "oneOf": forms}
    return request("What the answer must be.", {"format": nullable(form)}, required=())


def _response() -> Schema:
    part = thing(
        "The text.",
        {
            "type": constant("output_text", "Always `output_text`."),
            "annotations": {"type": "array", "description": "Always empty.", "maxItems": 0, "examples": [[]]},
            "logprobs": {"type": "array", "description": "Always empty.", "maxItems": 0, "examples": [[]]},
            "text": text("The text.", "Hello! How can I help?"),
        },
    )
    statuses = choice("`incomplete`: cut at `max_output_tokens`.", ("completed", "incomplete"))
    message = thing(
        "The message.",
        {
            "id": text("Its id.", f"msg_{_NAME}"),
            "type": constant("message", "Always `message`."),
            "status": statuses,
            "role": constant("assistant", "Always `assistant`."),
            "content": listed(part, "Its text, as the one piece."),
        },
    )
    reason = thing("Why it is not whole.", {"reason": constant("max_output_tokens", "It was cut there.")})
    keys = {
        "id": text("Its id.", f"resp_{_NAME}"),
        "object": constant("response", "Always `response`."),
        "created_at": moment("When it was written.", CREATED),
        "status": statuses,
        "error": _never("A refused request has an error object instead of a response."),
        "incomplete_details": empty(reason),
        "model": text("The model.", MODEL),
        "output": listed(message, "The one message."),
        "usage": _usage(),
        **_repeated(),
    }
    return thing("A chat model's answer, with OpenAI's keys only.", keys)


def _usage() -> Schema:
    return thing(
        "Its tokens.",
        {
            "input_tokens": whole("Of the prompt.", 38),
            "input_tokens_details": thing(
                "Of these:",
                {
                    "cached_tokens": whole("From a cache; all cost the same.", 0),
                    "cache_write_tokens": whole("Always 0.", 0),
                },
            ),
            "output_tokens": whole("Of the answer.", 12),
            "output_tokens_details": thing("Of these:", {"reasoning_tokens": whole("On reasoning.", 0)}),
            "total_tokens": whole("Both.", 50),
        },
    )


def _repeated() -> dict[str, Schema]:
    """What a response repeats of its request, and what no request of a batch can ask for."""
    reasoning = {"effort": _never("No effort is set."), "summary": _never("There is none.")}
    return {
        "instructions": empty(text("As asked.", "")),
        "max_output_tokens": whole("As asked, or as many as there was room for.", 50),
        "temperature": number("What held.", 1.0),
        "top_p": number("What held.", 1.0),
        "text": {"type": "object", "description": "As asked.", "examples": [{"format": {"type": "text"}}]},
        "metadata": _PAIRS | {"description": "As asked.", "examples": [{}]},
        "user": empty(text("As asked.", "")),
        "truncation": constant("disabled", "Always `disabled`."),
        "reasoning": thing("Nothing.", reasoning),
        "parallel_tool_calls": constant(value=True, meaning="OpenAI's default; there are no tools."),
        "tool_choice": constant("auto", "OpenAI's default; there are no tools."),
        "tools": {"type": "array", "description": "Always empty.", "maxItems": 0, "examples": [[]]},
        "background": constant(value=False, meaning="Always false."),
        "store": constant(value=False, meaning="Always false."),
        "previous_response_id": _never("Nothing is stored."),
    }
