"""Lines of `/v1/messages`, in and out: what may be asked, as gridline.lines reads it, and what is answered."""

from api.reference.shapes import (
    MODEL,
    Schema,
    choice,
    constant,
    empty,
    identity,
    listed,
    nullable,
    number,
    request,
    see,
    text,
    thing,
    whole,
)
from gridline import limits
from gridline.lines import messages

_NAME = identity("request", "")["examples"][0].removeprefix("req_")


def bodies() -> dict[str, Schema]:
    """Components of what is asked."""
    return {"MessageBody": _body(), "MessageTurn": _turn()}


def answers() -> dict[str, Schema]:
    """Components of what is answered."""
    return {"Message": _message()}


def _body() -> Schema:
    stops = listed(text("One.", "END", minLength=1), "Texts that end the answer.")
    optional = {
        "system": _said("What the model is told before the conversation.", "Answer in French."),
        "temperature": number("Randomness; 0 takes the likeliest token.", 0.7, minimum=0, maximum=1),
        "top_p": number("Sample from this share of probability.", 0.9, exclusiveMinimum=0, maximum=1),
        "top_k": whole("Sample from so many tokens; 0: from all.", 40, most=messages.TOP_K_MAX),
        "stop_sequences": stops | {"maxItems": limits.STOP_SEQUENCES_MAX},
        "metadata": request(
            "Taken, and not used.",
            {"user_id": nullable(text("Who asked.", "customer-7"))},
            required=(),
        ),
        "stream": constant(value=False, meaning="A batch does not stream."),
        "store": constant(value=False, meaning="A batch's answers are in its files, and nowhere else."),
    }
    keys = {
        "model": text("A model for chat.", MODEL),
        "max_tokens": whole("The most tokens to write.", 50, least=1, most=limits.OUTPUT_TOKENS_PER_LINE_MAX),
        "messages": listed(see("MessageTurn"), "The conversation; its last message is the user's.", least=1),
        **{name: nullable(schema) for name, schema in optional.items()},
    }
    return request(
        "What is asked of a chat model. Null counts as left out.",
        keys,
        required=("model", "max_tokens", "messages"),
    )


def _said(meaning: str, example: str, **more: int) -> Schema:
    """Text, as one or in pieces."""
    piece = request(
        "A piece of text.",
        {"type": constant("text", "Always `text`."), "text": text("The piece.", example)},
        required=("type", "text"),
    )
    return {
        "description": meaning,
        "anyOf": [text("As one text.", example, **more), listed(piece, "In pieces.", least=1)],
    }


def _turn() -> Schema:
    keys = {
        "role": choice("Who speaks.", messages.ROLES),
        "content": _said("What is said: text.", "Hello", minLength=1),
    }
    return request("One message.", keys, required=("role", "content"))


def _message() -> Schema:
    reasons = ("end_turn", "max_tokens", "stop_sequence")
    part = thing(
        "The text.", {"type": constant("text", "Always `text`."), "text": text("The text.", "Hello!")}
    )
    usage = thing(
        "Its tokens.",
        {
            "input_tokens": whole("Of the prompt, all of them.", 38),
            "cache_creation_input_tokens": whole("Always 0.", 0),
            "cache_read_input_tokens": whole("Always 0.", 0),
            "output_tokens": whole("Of the answer.", 12),
        },
    )
    return thing(
        "A chat model's answer, with Anthropic's keys only.",
        {
            "id": text("Its id.", f"msg_{_NAME}"),
            "type": constant("message", "Always `message`."),
            "role": constant("assistant", "Always `assistant`."),
            "model": text("The model.", MODEL),
            "content": listed(part, "Its text, as the one piece."),
            "stop_reason": choice("Why it ended.", reasons),
            "stop_sequence": empty(text("The one that ended it.", "END")),
            "usage": usage,
        },
    )
