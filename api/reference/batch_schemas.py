"""What the calls about batches take and give."""

from api.reference.shapes import (
    Schema,
    amount,
    choice,
    constant,
    empty,
    identity,
    listed,
    moment,
    nullable,
    page,
    request,
    see,
    text,
    thing,
    whole,
)
from gridline import limits
from gridline.batches import requests
from gridline.batches.reasons import REASONS, ReasonCode
from gridline.batches.states import Status
from gridline.profiles.profile import Profile

CREATED = 1767614400
NO_NUL = r"^[^\u0000]*$"
_WAIT = REASONS[ReasonCode.GRIDLINE_CAPACITY]


def schemas(profile: Profile) -> dict[str, Schema]:
    """Components by name, with the endpoints and windows of the dialect."""
    return {
        "BatchCreate": _create(profile),
        "Batch": _batch(profile, profile.extension, "Extension"),
        "BatchList": page("Batch"),
        "ExplainedBatch": _batch(profile, "explanation", "Explanation"),
        "ExplainedBatchList": page("ExplainedBatch"),
        "BatchErrors": _errors(),
        "BatchError": _error(),
        "RequestCounts": _counts(),
        "BatchUsage": _usage(),
        "Metadata": _metadata(),
        "Extension": _extension(profile),
        "Explanation": thing("All that is known of a batch beside OpenAI's keys.", _facts()),
    }


def _create(profile: Profile) -> Schema:
    keys = {
        "input_file_id": text(
            "The input: a file with purpose `batch`.",
            identity("file", "")["examples"][0],
            maxLength=limits.METADATA_KEY_CHARS_MAX,
            pattern=NO_NUL,
        ),
        "endpoint": choice("Where every line of the input goes.", profile.endpoints),
        "completion_window": choice("The time that the batch has, at the same price.", profile.windows),
        "metadata": nullable(see("Metadata")),
        "output_expires_after": nullable(
            see("ExpiresAfter", "How long output and error file are kept, from when they are written.")
        ),
    }
    return request("A batch to create.", keys, required=requests.REQUIRED)


def _batch(profile: Profile, key: str, component: str) -> Schema:
    """OpenAI's object with one more key."""
    keys = {
        "id": identity("batch", "The batch's id."),
        "object": constant("batch", "Always `batch`."),
        "endpoint": choice("Where its lines go.", profile.endpoints),
        "model": nullable(
            text("The base model of its lines; null until the file is checked.", "smollm2-135m-instruct")
        ),
        "errors": empty(see("BatchErrors")),
        "input_file_id": identity("file", "Its input."),
        "completion_window": choice("The time that it has.", profile.windows),
        "status": choice("Where it stands. It never goes back.", Status, "completed"),
        "output_file_id": nullable(
            identity(
                "file",
                "Answered lines, in input order; null until the file is complete, and if every line failed.",
            )
        ),
        "error_file_id": empty(
            identity(
                "error_file",
                "Lines without an answer; null until the file is complete, or if there are none.",
            )
        ),
        "request_counts": see("RequestCounts"),
        "usage": see("BatchUsage"),
        "metadata": nullable(see("Metadata")),
        "created_at": moment("When it was created.", CREATED),
        "in_progress_at": nullable(
            moment("When its file was found good and its credits were held.", CREATED + 20)
        ),
        "expires_at": moment("When it expires.", CREATED + 86_400),
        "finalizing_at": nullable(moment("When its last line had ended.", CREATED + 300)),
        "completed_at": nullable(moment("When it ended as `completed`.", CREATED + 310)),
        "failed_at": empty(moment("When it ended as `failed`.", CREATED)),
        "expired_at": empty(moment("When it ended as `expired`.", CREATED)),
        "cancelling_at": empty(moment("When its end was asked for.", CREATED)),
        "cancelled_at": empty(moment("When it ended as `cancelled`.", CREATED)),
        key: see(component),
    }
    return thing("A batch. Every key is always there, null while unset.", keys)


def _errors() -> Schema:
    return thing(
        "Why the batch failed before anything ran; null for every other batch.",
        {
            "object": constant("list", "Always `list`."),
            "data": listed(
                see("BatchError"),
                "One entry for each bad line, in file order; the first ones where there are many.",
                most=limits.BATCH_ERRORS_LISTED_MAX,
            ),
            "total": whole("How many there are in all.", 1),
        },
    )


def _error() -> Schema:
    return thing(
        "What is wrong with a line, or with the file as a whole.",
        {
            "code": text("A code of the page on errors.", "invalid_json_line"),
            "message": text("What is wrong, for people.", "This line is not parseable as valid JSON."),
            "param": nullable(text("The key that is wrong.", "body.max_tokens")),
            "line": nullable(
                whole("Physical line of the file; null where it concerns the file.", 7, least=1)
            ),
        },
    )


def _counts() -> Schema:
    return thing(
        "How many lines there are, and how they ended; live while the batch runs.",
        {
            "total": whole("Lines of the input; 0 while it is being checked.", 2),
            "completed": whole("Lines with an answer.", 2),
            "failed": whole("Lines with an error, expired ones too.", 0),
            "cancelled": whole("Lines that were cancelled before they ran.", 0),
        },
    )


def _usage() -> Schema:
    return thing(
        "Tokens of the lines that were answered.",
        {
            "input_tokens": whole("Tokens of the prompts.", 76),
            "input_tokens_details": thing(
                "Of these:", {"cached_tokens": whole("Taken from a cache; all tokens cost the same here.", 0)}
            ),
            "output_tokens": whole("Tokens of the answers.", 24),
            "output_tokens_details": thing(
                "Of these:", {"reasoning_tokens": whole("Spent on reasoning.", 0)}
            ),
            "total_tokens": whole("Both together.", 100),
        },
    )


def _metadata() -> Schema:
    return {
        "type": "object",
        "description": "Pairs of texts of your own; they come back as they are.",
        "maxProperties": limits.METADATA_PAIRS_MAX,
        "propertyNames": {"maxLength": limits.METADATA_KEY_CHARS_MAX, "pattern": NO_NUL},
        "additionalProperties": {
            "type": "string",
            "description": "Anything without a NUL character.",
            "maxLength": limits.METADATA_VALUE_CHARS_MAX,
            "pattern": NO_NUL,
        },
        "examples": [{"project": "spring"}],
    }


def _facts() -> dict[str, Schema]:
    codes = choice("The wait's code.", ReasonCode, ReasonCode.GRIDLINE_CAPACITY)
    return {
        "reason": empty(text("Why it waits, in a sentence; null while nothing waits.", _WAIT.sentence)),
        "reason_code": empty(codes),
        "since": empty(moment("Since when it waits.", CREATED)),
        "next_step": empty(text("What helps, and what does not.", _WAIT.next_step)),
        "hold": nullable(amount("The most that it can cost: what is set aside for it.", "0.001234000")),
        "cost": nullable(amount("What it was charged.", "0.000001240")),
        "error_code": empty(text("Why it failed as a whole.", "insufficient_quota")),
    }


def _extension(profile: Profile) -> Schema:
    """What the dialect says of a batch."""
    facts = _facts()
    keys = {name: constant(value, "The same on every batch.") for name, value in profile.batch_constants}
    keys |= {name: facts[name] for name in profile.batch_facts}
    return thing("What OpenAI's object lacks: what the dialect says of waits and costs.", keys)
