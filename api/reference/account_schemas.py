"""What the calls beyond OpenAI's take and give: account, receipts, events; models, which carry prices; errors."""

from api.reference.shapes import (
    Schema,
    amount,
    choice,
    constant,
    identity,
    listed,
    moment,
    nullable,
    page,
    see,
    text,
    thing,
    whole,
)
from gridline import limits
from gridline.money import credits_text
from gridline.profiles.profile import Profile

CREATED = 1767614400
RESETS_AT = 1767657600
KINDS = ("chat", "embedding")


def schemas(profile: Profile) -> dict[str, Schema]:
    """Components by name."""
    return {
        "Model": _model(profile),
        "ModelCard": _card(profile),
        "Price": _price(),
        "ModelList": thing(
            "Every model that can be named in a line.",
            {"object": constant("list", "Always `list`."), "data": listed(see("Model"), "The models.")},
        ),
        "Account": _account(),
        "Use": _use(),
        "Receipt": _receipt(),
        "Event": _event(),
        "EventList": page("Event", cursors=False),
        "Error": _error(),
        "Limit": _limit(),
        "Health": thing("That it lives.", {"status": constant("ok", "Always `ok`.")}),
        "Readiness": _readiness(),
        "Metrics": text("Prometheus' text format.", "gridline_http_requests_total 1.0\n"),
        "Document": {
            "type": "object",
            "description": "An OpenAPI 3.1 document, as its specification has it.",
            "required": ["openapi", "info", "paths"],
            "examples": [{"openapi": "3.1.0", "info": {"title": "Gridline", "version": "…"}, "paths": {}}],
        },
    }


def _model(profile: Profile) -> Schema:
    return thing(
        "A model that can be named in a line.",
        {
            "id": text("What lines name it by.", "smollm2-135m-instruct"),
            "object": constant("model", "Always `model`."),
            "created": moment("When it first passed its qualification here.", CREATED),
            "owned_by": text("Who published it.", "HuggingFaceTB"),
            profile.extension: see("ModelCard"),
        },
    )


def _card(profile: Profile) -> Schema:
    return thing(
        "What OpenAI's object lacks: what the model takes and costs.",
        {
            "kind": choice("What it answers with.", KINDS),
            "endpoints": listed(choice("An endpoint.", profile.endpoints), "Where it can be used."),
            "context_tokens": whole("The most that prompt and answer may have together.", 8_192),
            "output_tokens_max": whole("The most that it writes for one request.", 1_024),
            "dimensions": nullable(whole("Length of its embeddings; null for a chat model.", 384)),
            "repository": text("Where its weights come from.", "HuggingFaceTB/SmolLM2-135M-Instruct"),
            "commit": text("At which commit, in full.", "12fd25f77366fa6b3b4b768ec3050bf629380bac"),
            "licence": text("Its licence.", "Apache-2.0"),
            "prices": thing("What its tokens cost.", {"input": see("Price"), "output": see("Price")}),
            "adapter": nullable(_adapter()),
        },
    )


def _adapter() -> Schema:
    return thing(
        "What is its own of a fine-tuned model of your account; null for other models.",
        {
            "base": text("The model that it is an adapter of.", "smollm2-135m-instruct"),
            "rank": whole("Its rank, which decides how many a batch may mix.", 16),
            "note": nullable(text("What to know of it.", "Trained on a 4-bit base.")),
        },
    )


def _price() -> Schema:
    return thing(
        "What tokens cost.",
        {
            "credits_per_million_tokens": amount("For a million tokens.", "0.010000000"),
            "nanos_per_token": whole("For one token, in nano-credits: exact.", 10),
        },
    )


def _account() -> Schema:
    def limit(meaning: str, most: int | str, current: int | str | None = None, **more: int) -> Schema:
        example = {"limit": most} if current is None else {"limit": most, "current": current}
        return see("Use", meaning) | {"examples": [example | more]}

    daily = credits_text(limits.DAILY_CREDITS_NANOS_DEFAULT)
    return thing(
        "The account that the token belongs to.",
        {
            "id": identity("account", "The account's id."),
            "object": constant("account", "Always `account`."),
            "name": text("What the operator calls it.", "Alice Analytics"),
            "created_at": moment("When it was opened.", CREATED),
            "limits": thing(
                "What it may use, and what of it is used. To ask for more, write to the operator.",
                {
                    "open_batches": limit("Batches that have not ended.", limits.OPEN_BATCHES_DEFAULT, 1),
                    "files": limit("Stored files.", limits.ACCOUNT_FILES_MAX, 12),
                    "stored_bytes": limit("Their bytes.", limits.ACCOUNT_STORED_BYTES_MAX, 40_960),
                    "leases": limit("GPU leases at once.", limits.ACCOUNT_LEASES_DEFAULT),
                    "daily_credits": limit(
                        "Credits that batches may hold in a UTC day, less what came back of them.",
                        daily,
                        "0.001234000",
                        resets_at=RESETS_AT,
                    ),
                    "retention_days": nullable(
                        limit("Days that files are kept, in dialects that go by the account; else null.", 30)
                    ),
                    "monthly_budget": nullable(
                        limit(
                            "The same of a UTC month: the budget that its owner set; null without one.",
                            "25.000000000",
                            "0.001234000",
                            resets_at=RESETS_AT,
                        )
                    ),
                },
            ),
            "balance": thing(
                "Its credits.",
                {
                    "available": amount("What it can spend.", "9.998766000"),
                    "held": amount("What is set aside for open batches.", "0.001234000"),
                },
            ),
        },
    )


def _use() -> Schema:
    return thing(
        "A limit.",
        {
            "limit": {"type": ["integer", "string"], "description": "The most; a text where it is credits."},
            "current": {
                "type": ["integer", "string"],
                "description": "What is used of it, where that is counted; a text where it is credits.",
            },
            "resets_at": moment("When the use is back at nothing, for a limit of a day.", RESETS_AT),
        },
        optional=("current", "resets_at"),
    ) | {"examples": [{"limit": limits.OPEN_BATCHES_DEFAULT, "current": 1}]}


def _receipt() -> Schema:
    return thing(
        "What a batch was charged, and why. Until it is settled, what only its end can tell is null.",
        {
            "object": constant("gridline.receipt", "Always `gridline.receipt`."),
            "batch_id": identity("batch", "The batch."),
            "state": choice("Whether the charge is final.", ("held", "settled"), "settled"),
            "model": text("The model.", "smollm2-135m-instruct"),
            "model_commit": text("Its commit, in full.", "12fd25f77366fa6b3b4b768ec3050bf629380bac"),
            "rates": thing(
                "The prices that were copied when the credits were held: later ones do not reach this batch.",
                {
                    "input_token": amount("For a token of a prompt.", "0.000000010"),
                    "output_token": amount("For a token of an answer.", "0.000000020"),
                },
            ),
            "hold": amount("What was set aside.", "0.001234000"),
            "charged": nullable(amount("What it costs.", "0.000001240")),
            "returned": nullable(amount("What came back of the hold.", "0.001232760")),
            "refunded": amount("What the operator gave back of the charge since.", "0.000000000"),
            "lines": nullable(whole("Lines that were delivered.", 2)),
            "input_tokens": nullable(whole("Tokens of their prompts.", 76)),
            "output_tokens": nullable(whole("Tokens of their answers.", 24)),
            "usage": listed(
                thing(
                    "What one model did.",
                    {
                        "model": text("The model.", "smollm2-135m-instruct"),
                        "lines": whole("Lines delivered.", 2),
                        "input_tokens": whole("Tokens of their prompts.", 76),
                        "output_tokens": whole("Tokens of their answers.", 24),
                        "amount": amount("Its part of the charge.", "0.000001240"),
                    },
                ),
                "The same by model.",
            ),
            "held_at": moment("When the credits were held.", CREATED),
            "settled_at": nullable(moment("When the charge was made.", CREATED + 310)),
            "transactions": listed(
                identity("transaction", "An entry of the books."), "The entries of the books."
            ),
        },
    )


def _event() -> Schema:
    return thing(
        "Something that happened to a batch.",
        {
            "object": constant("batch.event", "Always `batch.event`."),
            "sequence": whole("Grows from event to event.", 1),
            "at": moment("When.", CREATED),
            "kind": text("What: `created`, a status, `waiting`, `held`, `started` and the like.", "created"),
            "actor": text(
                "Who: a token by its id, `operator`, or `keeper` for the platform itself.", "keeper"
            ),
            "details": {
                "type": "object",
                "description": "Ids, codes and counts, by kind; never a prompt or a result.",
                "examples": [{}],
            },
        },
    )


def _error() -> Schema:
    return thing(
        "Why a call was refused.",
        {
            "error": thing(
                "OpenAI's error object.",
                {
                    "message": text("What is wrong, the limit, the value and what helps.", "…"),
                    "type": text("The kind of error.", "invalid_request_error"),
                    "param": nullable(text("The parameter that is wrong.", "endpoint")),
                    "code": nullable(text("The code to decide by.", "invalid_value")),
                    "limit": see("Limit"),
                },
                optional=("limit",),
            )
        },
    )


def _limit() -> Schema:
    number: Schema = {"type": ["integer", "string"]}
    return thing(
        "The limit that was met.",
        {
            "name": text("Its name.", "open_batches"),
            "limit": number | {"description": "The most.", "examples": [limits.OPEN_BATCHES_DEFAULT]},
            "current": number | {"description": "What is used.", "examples": [limits.OPEN_BATCHES_DEFAULT]},
            "unit": text("What is counted.", "batches"),
            "resets_at": moment("When the use is back at nothing, for a limit of a day.", RESETS_AT),
        },
        optional=("current", "unit", "resets_at"),
    )


def _readiness() -> Schema:
    return thing(
        "That it can serve.",
        {
            "status": constant("ok", "Always `ok`: otherwise the answer is an error."),
            "checks": thing(
                "What was looked at.",
                {
                    "database": constant("ok", "Always `ok`."),
                    "store": constant("ok", "Always `ok`."),
                },
            ),
        },
    )
