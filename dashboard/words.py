"""The words, icons and colours for what the API names: statuses, events, problems. Unknown names still read well."""

from dataclasses import dataclass
from typing import Literal

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
}

SIGN_IN_PROBLEMS: dict[str, str] = {
    "invalid_api_key": "This token is not known here, or it was revoked. Check that you pasted all of it.",
    "signed_out": "Your token is no longer accepted: it was revoked or has expired. Sign in with another one.",
    "unreachable": "The Gridline API cannot be reached at the moment. Your token was not checked; try again shortly.",
    "timeout": "The Gridline API did not answer in time. Your token was not checked; try again shortly.",
}
SIGN_IN_OTHER = "The Gridline API could not check the token. Try again shortly."


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


def endpoint(path: str) -> str:
    """A batch's endpoint in words."""
    return {"/v1/chat/completions": "Chat completions", "/v1/embeddings": "Embeddings"}.get(path, path)


def _readable(name: str) -> str:
    return name.replace("_", " ").replace(".", " ").strip().capitalize() or "Unknown"
