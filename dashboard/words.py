"""The words, icons and colours for what the API names: statuses, events, problems. Unknown names still read well."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Colour = Literal["green", "red", "orange", "blue", "violet", "gray"]


@dataclass(frozen=True)
class Word:
    """How one thing is shown; ``icon`` is a Material Symbols name. Colour never stands alone."""

    text: str
    icon: str
    colour: Colour


STATUSES: dict[str, Word] = {
    "validating": Word("Validating", "rule", "violet"),
    "in_progress": Word("In progress", "autorenew", "blue"),
    "finalizing": Word("Finalizing", "inventory_2", "blue"),
    "completed": Word("Completed", "check_circle", "green"),
    "failed": Word("Failed", "error", "red"),
    "expired": Word("Expired", "timer_off", "orange"),
    "cancelling": Word("Cancelling", "hourglass_bottom", "gray"),
    "cancelled": Word("Cancelled", "block", "gray"),
}

# A batch's events are its statuses and these.
EVENTS: dict[str, Word] = {
    "created": Word("Created", "add_circle", "gray"),
    "waiting": Word("Waiting", "hourglass_top", "orange"),
    "validated": Word("File checked", "fact_check", "violet"),
    "held": Word("Credits held", "savings", "blue"),
    "went_on": Word("Went on", "play_arrow", "green"),
    "started": Word("Started", "rocket_launch", "blue"),
    "operator_hold": Word("Held by an operator", "front_hand", "orange"),
    "operator_release": Word("Released by an operator", "play_arrow", "green"),
    "gpu_time_over": Word("GPU time used up", "timer_off", "orange"),
    "settled": Word("Settled", "receipt_long", "green"),
}

# Short names of product B7's reason codes, for the timeline; the sentences come from the API.
WAITS: dict[str, str] = {
    "starting": "to start",
    "validating_file": "for the file to be checked",
    "account_capacity": "for your account's other batches",
    "customer_credit": "for credit",
    "gridline_capacity": "for a GPU",
    "platform_daily_limit": "for the platform's next day",
    "model_loading": "for the model to load",
    "retrying": "to run lost lines again",
    "held_by_operator": "for the operator",
}

LIMITS: dict[str, str] = {
    "open_batches": "Open batches at once",
    "files": "Files stored",
    "stored_bytes": "Bytes stored",
    "leases": "GPUs at once",
    "daily_credits": "Credits a UTC day",
    "monthly_budget": "Your budget a UTC month",
    "retention_days": "Days that files are kept",
    "open_fine_tunes": "Open fine-tunes at once",
    "requests_per_minute": "Calls a minute",
    "file_bytes": "Bytes a file",
    "file_requests": "Lines a file",
    "line_bytes": "Bytes a line",
    "output_tokens_per_request": "Tokens that a line may write",
    "embedding_inputs_per_batch": "Inputs an embeddings batch",
}

# What a failed line means and what mends it, by product B5's codes.
FIXES: dict[str, str] = {
    "invalid_request": "The engine or the check refused this request: the message says which part. Correct it and send it again.",
    "context_length_exceeded": "Prompt and max_tokens are longer than the model's context. Shorten the prompt or lower max_tokens.",
    "structured_output_invalid": "The answer is not the JSON that was asked for. Simplify the schema, or say in the prompt to "
    "answer in JSON, and send it again.",
    "permission_denied": "It asked for a stored response, which batches do not have. Take out the key that the message names, and "
    "send it again with the whole conversation in it.",
    "server_error": "Lost to a fault on our side, not to the request. Send it again as it is.",
    "batch_expired": "It had not run when the window ended. Send it again as it is.",
    "batch_cancelled": "It had not run when the batch was cancelled. Send it again if it is still wanted.",
}
FIX_OTHER = "The message says what was wrong."

PURPOSES: dict[str, str] = {"batch": "Input", "batch_output": "Result"}

ENTRIES: dict[str, str] = {
    "grant": "Credits added",
    "hold": "Held for a batch",
    "settle": "Batch charged",
    "refund": "Refund",
    "adjust": "Correction",
}

SCOPES: dict[str, str] = {
    "read": "Look at files, batches and credits",
    "routing:write": "Upload, create and cancel",
}

SIGN_IN_PROBLEMS: dict[str, str] = {
    "invalid_api_key": "This token is not known here, or it was revoked. Check that you pasted all of it.",
    "invalid_credentials": "No user has this e-mail with this password. Check both, or sign up if you have not yet.",
    "email_taken": "This e-mail has signed up before, with another password. Sign in instead.",
    "email_has_user": "Your e-mail has signed up here before. If that was with a password, sign in with it; if it was not you, "
    "write to the operator.",
    "email_not_verified": "Your identity provider does not say that your e-mail is yours. Confirm it there, then sign in again.",
    "invalid_id_token": "What your identity provider said was not accepted: it was not of this sign-in, or too old. Begin again; "
    "if it goes on, write to the operator.",
    "identity_cancelled": "You did not sign in at your identity provider. Begin again, or sign in in another way.",
    "identity_refused": "Your identity provider did not say who you are. Begin again; if it goes on, write to the operator.",
    "identity_lost": "This sign-in was begun in another browser, was used already, or took longer than 10 minutes. Begin again.",
    "identity_not_taken": "The Gridline API does not believe this identity provider. Write to the operator.",
    "provider_unreachable": "Your identity provider cannot be reached at the moment. Nothing was checked; try again shortly.",
    "sign_up_closed": "Customers do not sign up by themselves here. Ask the operator for an account.",
    "passwords_differ": "The two passwords are not the same. Type them anew.",
    "string_below_min_length": "The password is too short: it needs at least 12 characters.",
    "string_above_max_length": "An e-mail has at most 254 characters, a password at most 256.",
    "invalid_value": "This is no e-mail address, or the password has a character that cannot be used.",
    "rate_limit_exceeded": "Too many tries from your address or with this e-mail. Wait a minute (after many sign-ups: "
    "an hour), then try again.",
    "signed_out": "Your session or token is no longer accepted: it has ended or was revoked. Sign in again.",
    "unreachable": "The Gridline API cannot be reached at the moment. Nothing was checked; try again shortly.",
    "timeout": "The Gridline API did not answer in time. Nothing was checked; try again shortly.",
}
SIGN_IN_OTHER = "The Gridline API could not check who you are. Try again shortly."


def status(name: str) -> Word:
    """How a batch's status is shown."""
    return STATUSES.get(name) or Word(_readable(name), "help", "gray")


def event(kind: str) -> Word:
    """How an event is shown; a move to a status looks like the status."""
    return EVENTS.get(kind) or STATUSES.get(kind) or Word(_readable(kind), "circle", "gray")


def wait(code: str) -> str:
    """What a batch waits for, to follow the word Waiting."""
    return WAITS.get(code, f"({_readable(code).lower()})")


def problem(code: str) -> str:
    """Why signing in did not work."""
    return SIGN_IN_PROBLEMS.get(code, SIGN_IN_OTHER)


def limit(name: str) -> str:
    """What one of the account's limits bounds."""
    return LIMITS.get(name, _readable(name))


ENDPOINTS = {
    "/v1/chat/completions": "Chat completions",
    "/v1/embeddings": "Embeddings",
    "/v1/responses": "Responses",
    "/v1/messages": "Messages",
}


def endpoint(path: str) -> str:
    """A batch's endpoint in words."""
    return ENDPOINTS.get(path, path)


def fix(code: str) -> str:
    """What mends a failed line."""
    return FIXES.get(code, FIX_OTHER)


def purpose(name: str) -> str:
    """What a file is for."""
    return PURPOSES.get(name, _readable(name))


def entry(kind: str) -> str:
    """What moved credits."""
    return ENTRIES.get(kind, _readable(kind))


def notice(name: str) -> str:
    """What a webhook hears of."""
    return _readable(name)


def webhook(shown: Mapping[str, Any]) -> Word:
    """How a webhook is: it takes events, has failed lately, or is sent nothing."""
    if shown["disabled"]:
        why, _, said = (shown.get("disabled_reason") or "").partition(": ")
        if why == "disabled_by_operator":
            return Word(f"Disabled by the operator: {said}", "block", "red")
        failing = why == "failing"
        return Word(
            "Disabled: it failed for too long" if failing else "Disabled",
            "block",
            "red" if failing else "gray",
        )
    if shown.get("failing_since"):
        return Word("Fails, is tried again", "warning", "orange")
    return Word("Active", "check_circle", "green")


def delivery(state: str) -> str:
    """How far a delivery is."""
    return {"delivered": "Delivered", "given_up": "Given up", "pending": "To be sent"}.get(
        state, _readable(state)
    )


def scope(name: str) -> str:
    """What a token with this scope may do."""
    return SCOPES.get(name, _readable(name))


def _readable(name: str) -> str:
    return name.replace("_", " ").replace(".", " ").strip().capitalize() or "Unknown"
