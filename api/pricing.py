"""What things cost, for anybody: rates of every listed model, what a credit is worth, limits. No token, no customer's data."""

from typing import Any

from flask import Blueprint, Response, current_app, jsonify

from api.models import listed_models
from api.reference.operations import operation
from gridline import limits
from gridline.db.work import reading
from gridline.money import NANOS_PER_CREDIT, credits_text
from gridline.profiles.profile import Profile

CREDIT_USD = "1.00"
KEPT_SECONDS = 60

blueprint = Blueprint("pricing", __name__)


@blueprint.get("/pricing")
@operation(
    "Credits",
    "readPricing",
    "Look at prices and limits",
    returns="Pricing",
    sends=("Cache-Control",),
    refuses=("service_unavailable",),
)
def show_pricing() -> Response:
    """Every listed model's rates, what a credit is worth, and the limits of a new account. Needs no token."""
    with reading() as work:
        models = listed_models(work)
    answer = jsonify(
        object="gridline.pricing",
        credit={"usd": CREDIT_USD, "nanos": NANOS_PER_CREDIT},
        packs=[
            {"credits": credits_text(size * NANOS_PER_CREDIT), "usd": f"{size}.00"}
            for size in limits.CREDIT_PACKS
        ],
        models=models,
        limits=_limits(current_app.config["PROFILE"]),
    )
    answer.headers["Cache-Control"] = f"public, max-age={KEPT_SECONDS}"
    return answer


def _limits(profile: Profile) -> list[dict[str, Any]]:
    """The limits that a customer plans with; docs/limits.md has all."""
    rows: tuple[tuple[str, int | str, str], ...] = (
        ("open_batches", limits.OPEN_BATCHES_DEFAULT, "batches"),
        ("open_fine_tunes", limits.OPEN_FINE_TUNES_DEFAULT, "fine-tunes"),
        ("daily_credits", credits_text(limits.DAILY_CREDITS_NANOS_DEFAULT), "credits"),
        ("leases", limits.ACCOUNT_LEASES_DEFAULT, "GPUs"),
        ("requests_per_minute", limits.REQUESTS_PER_MINUTE_DEFAULT, "requests"),
        ("files", limits.ACCOUNT_FILES_MAX, "files"),
        ("stored_bytes", limits.ACCOUNT_STORED_BYTES_MAX, "bytes"),
        ("file_bytes", profile.file_bytes_max, "bytes"),
        ("file_requests", profile.file_lines_max, "requests"),
        ("line_bytes", limits.LINE_BYTES_MAX, "bytes"),
        ("output_tokens_per_request", limits.OUTPUT_TOKENS_PER_LINE_MAX, "tokens"),
        ("embedding_inputs_per_batch", limits.EMBEDDING_INPUTS_PER_BATCH_MAX, "inputs"),
    )
    return [{"name": name, "limit": most, "unit": unit} for name, most, unit in rows]
