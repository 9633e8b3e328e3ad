"""What the calls about credits take and give: entries, statements, usage, prices, estimates."""

from api.reference.account_schemas import CREATED, RESETS_AT
from api.reference.parameters import REQUEST
from api.reference.shapes import (
    MODEL,
    Schema,
    amount,
    choice,
    constant,
    day,
    empty,
    flag,
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
from gridline import ids, limits
from gridline.ledger.statement import COLUMNS
from gridline.profiles.profile import Profile

KINDS = ("grant", "adjust", "refund", "hold", "settle")


def schemas(profile: Profile) -> dict[str, Schema]:
    """Components by name."""
    return request_log(profile) | {
        "Entry": _entry(),
        "EntryList": page("Entry"),
        "Standing": thing(
            "Credits at an instant.",
            {
                "available": amount("What could be spent.", "9.998766000"),
                "held": amount("What was set aside for open batches.", "0.001234000"),
            },
        ),
        "Statement": _statement(),
        "StatementSheet": _sheet(),
        "Usage": _usage(),
        "UsageList": page("Usage", cursors=False),
        "Pricing": _pricing(),
        "EstimateCreate": _estimate_create(profile),
        "Estimate": _estimate(profile),
        "BadLines": _bad_lines(),
        "BudgetSet": request(
            "A budget of a UTC month.",
            {
                "limit": text(
                    "The most that batches may hold in it, less what comes back, in credits.", "25.00"
                )
            },
            required=("limit",),
        ),
        "Budget": thing(
            "The account's budget, and what is used of it.",
            {
                "object": constant("gridline.budget", "Always `gridline.budget`."),
                "monthly_budget": nullable(
                    see("Use", "The budget of this UTC month; null without one.")
                    | {
                        "examples": [
                            {"limit": "25.000000000", "current": "0.001234000", "resets_at": RESETS_AT}
                        ]
                    }
                ),
            },
        ),
    }


def request_log(profile: Profile) -> dict[str, Schema]:
    """Components of the request log, where the dialect has one."""
    if not profile.request_log_days:
        return {}
    request_ = thing(
        "What became of one line of a batch that has ended. No prompt, no answer.",
        {
            "id": text("What a page goes on after.", REQUEST),
            "object": constant("gridline.request", "Always `gridline.request`."),
            "created_at": moment("When its batch ended.", CREATED),
            "source": constant("batch", "Always `batch`."),
            "batch_id": identity("batch", "Its batch."),
            "custom_id": text("The line's own id.", "question-1"),
            "model": nullable(text("The model that the line names; null where it never ran.", MODEL)),
            "status_code": nullable(
                whole("The status of its response; null for a line that never ran.", 200)
            ),
            "code": nullable(text("The line's error code; null where it was delivered.", "batch_expired")),
            "input_tokens": whole("Tokens of the prompt; 0 where it was not delivered.", 38),
            "output_tokens": whole("Tokens that were written; 0 where it was not delivered.", 9),
            "cost": amount("What it was charged.", "0.000000560"),
        },
    )
    return {"Request": request_, "RequestList": page("Request")}


def _entry() -> Schema:
    return thing(
        "Something that moved the account's credits.",
        {
            "id": identity("transaction", "The entry's id."),
            "object": constant("gridline.entry", "Always `gridline.entry`."),
            "created_at": moment("When.", CREATED),
            "kind": choice(
                "`hold` sets the most that a batch can cost aside, `settle` charges it and returns the rest; `grant`, "
                "`adjust` and `refund` are the operator's.",
                KINDS,
                "hold",
            ),
            "amount": amount(
                "What it added to all of the account's credits: 0 for a hold, below 0 for a charge.",
                "0.000000000",
            ),
            "available_change": amount("What it added to what can be spent.", "-0.001234000"),
            "held_change": amount("What it added to what is set aside.", "0.001234000"),
            "batch_id": nullable(identity("batch", "The batch that it is about.")),
            "actor": text("Who: `operator`, or `platform` by itself.", "platform"),
            "why": text("Why.", "The most the batch can cost"),
        },
    )


def _statement() -> Schema:
    return thing(
        "An account's credits over some UTC days. Its numbers add up: opening, entries, closing.",
        {
            "object": constant("gridline.statement", "Always `gridline.statement`."),
            "from": day("The first day.", "2026-01-01"),
            "to": day("The last day, included.", "2026-01-31"),
            "opening": see("Standing", "Before the first day's first entry."),
            "closing": see("Standing", "After the last day's last entry."),
            "data": listed(
                see("Entry"), f"Every entry between, oldest first; at most {limits.STATEMENT_ENTRIES_MAX:,}."
            ),
        },
    )


def _sheet() -> Schema:
    return {
        "type": "string",
        "description": "The statement as CSV (RFC 4180): a head, an opening line, every entry, a closing line. `available` "
        "and `held` are the balances that the line left. A text that a spreadsheet could take for a formula has an "
        "apostrophe before it.",
        "contentMediaType": "text/csv",
        "examples": [f"{','.join(COLUMNS)}\r\n"],
    }


def _usage() -> Schema:
    return thing(
        "What batches that were settled on a day used of a model.",
        {
            "object": constant("gridline.usage", "Always `gridline.usage`."),
            "day": day("The UTC day of settlement.", "2026-01-05"),
            "model": text("The model.", MODEL),
            "batches": whole("Batches.", 1),
            "lines": whole("Lines delivered.", 2),
            "input_tokens": whole("Tokens of their prompts.", 76),
            "output_tokens": whole("Tokens of their answers.", 24),
            "amount": amount("What they cost.", "0.000001240"),
        },
    )


def _pricing() -> Schema:
    return thing(
        "What things cost.",
        {
            "object": constant("gridline.pricing", "Always `gridline.pricing`."),
            "credit": thing(
                "What a credit is.",
                {
                    "usd": text("What it is worth in US dollars.", "1.00"),
                    "nanos": whole("Nano-credits in it, in which prices are whole numbers.", 1_000_000_000),
                },
            ),
            "packs": listed(
                thing(
                    "Credits as they are sold.",
                    {"credits": amount("How many.", "10.000000000"), "usd": text("For how much.", "10.00")},
                ),
                "The packs. Ask the operator for one.",
            ),
            "models": listed(see("Model"), "Every model that can be named in a line, with its rates."),
            "limits": listed(see("Limit"), "What a new account may use, and what files and lines may hold."),
        },
    )


def _estimate_create(profile: Profile) -> Schema:
    keys = {
        "input_file_id": identity("file", "The file."),
        "endpoint": choice("The endpoint of all its lines.", profile.endpoints),
        "completion_window": choice("The window; the price is the same.", profile.windows),
    }
    return request("The batch that an estimate is asked for.", keys, required=tuple(keys))


def _bad_lines() -> Schema:
    entry = thing(
        "A bad line, as validation would name it.",
        {
            "code": text("The code.", "missing_required_parameter"),
            "message": text("What is wrong.", "…"),
            "param": nullable(text("The key that is wrong.", "custom_id")),
            "line": nullable(whole("Line of the file, from 1; null where it concerns the file.", 3)),
        },
    )
    return thing(
        "Lines that make a batch of this file fail.",
        {
            "object": constant("list", "Always `list`."),
            "data": listed(entry, f"The first {limits.ESTIMATE_ERRORS_LISTED_MAX}, in file order."),
            "total": whole("How many there are.", 1),
        },
    )


def _estimate(profile: Profile) -> Schema:
    daily = {"limit": "100.000000000", "current": "0.001234000", "resets_at": RESETS_AT}
    return thing(
        "What a batch of the file would cost. With bad lines it would fail and cost nothing: then the numbers are null.",
        {
            "object": constant("gridline.estimate", "Always `gridline.estimate`."),
            "input_file_id": text("The file.", ids.derived("file", "example")),
            "endpoint": choice("The endpoint.", profile.endpoints),
            "completion_window": choice("The window.", profile.windows),
            "model": nullable(text("The batch's model; null where no line names one.", MODEL)),
            "lines": whole("Requests in the file.", 2),
            "errors": empty(see("BadLines")),
            "exact": flag(
                "Whether every line was counted. Of a large file a part is; then `ceiling` is never too low, and the "
                "hold may be smaller.",
                example=True,
            ),
            "input_tokens": nullable(whole("Tokens of the prompts; where not exact, about.", 76)),
            "output_tokens_max": nullable(whole("The most that all answers can have.", 2_048)),
            "ceiling": nullable(amount("The most that it can cost, and what would be held.", "0.000041720")),
            "likely": nullable(amount("What it will likely cost.", "0.000021240")),
            "likely_basis": nullable(
                choice(
                    "Whose completed batches with this model say how much of `max_tokens` is written: your account's, "
                    "all accounts', or nobody's: then half is assumed.",
                    ("account", "platform", "default"),
                )
            ),
            "available": amount("What you can spend.", "9.998766000"),
            "covered": nullable(flag("Whether that covers the ceiling.", example=True)),
            "daily_credits": see("Use", "The account's limit of a UTC day.") | {"examples": [daily]},
            "within_daily_limit": nullable(
                flag("Whether the ceiling fits what is left of it today.", example=True)
            ),
            "monthly_budget": nullable(
                see("Use", "The account's budget of a UTC month; null without one.") | {"examples": [daily]}
            ),
            "within_monthly_budget": nullable(
                flag("Whether the ceiling fits what is left of that this month.", example=True)
            ),
        },
    )
