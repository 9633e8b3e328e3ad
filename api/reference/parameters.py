"""What calls take beside a body: parts of the path, query parameters, headers; limits as the code has them."""

from collections.abc import Collection
from typing import Any

from api.reference.shapes import Schema, choice, day, identity, text, whole
from gridline import ids, limits
from gridline.files.objects import PURPOSES

REQUEST = f"{ids.derived('batch', 'example')}-0"
"""The id of a batch's first request in the log."""

IN_PATH: dict[str, Schema] = {
    "file_id": identity("file", "The file's id."),
    "batch_id": identity("batch", "The batch's id."),
    "upload_id": identity("upload", "The upload's id."),
    "webhook_id": identity("webhook", "The webhook's id."),
    "token_id": identity("token", "The token's id."),
    "model": text("The model's id.", "smollm2-135m-instruct"),
}
"""By the name of the route's variable."""


def _after(kind: str) -> Schema:
    return identity(kind, "Go on after this id: the `last_id` of the page before.")


def _limit(default: int, most: int) -> Schema:
    return whole("The most entries that the page may have.", default, least=1, most=most) | {
        "default": default
    }


_SCHEMAS: dict[str, tuple[str, str, Schema]] = {
    "batches_after": ("query", "after", _after("batch")),
    "batches_limit": ("query", "limit", _limit(limits.BATCHES_PAGE_DEFAULT, limits.BATCHES_PAGE_MAX)),
    "results_after": (
        "query",
        "after",
        text("Go on where an earlier page ended: its header `Gridline-Next-Cursor`.", "AXK0wq8nZwAAAAM"),
    ),
    "results_limit": (
        "query",
        "limit",
        whole(
            "About how many lines the page may have: what was written together stays together.",
            limits.RESULTS_PAGE_LINES_DEFAULT,
            least=1,
            most=limits.RESULTS_PAGE_LINES_MAX,
        )
        | {"default": limits.RESULTS_PAGE_LINES_DEFAULT},
    ),
    "entries_after": ("query", "after", _after("transaction")),
    "entries_limit": ("query", "limit", _limit(limits.ENTRIES_PAGE_DEFAULT, limits.ENTRIES_PAGE_MAX)),
    "requests_batch": ("query", "batch_id", identity("batch", "Only the requests of this batch.")),
    "requests_day": (
        "query",
        "day",
        day("The UTC day on which the batches ended; by default today. Not beside `batch_id`.", "2026-01-31"),
    ),
    "requests_after": (
        "query",
        "after",
        text("Go on after this id: the `last_id` of the page before.", REQUEST),
    ),
    "requests_limit": ("query", "limit", _limit(limits.REQUESTS_PAGE_DEFAULT, limits.REQUESTS_PAGE_MAX)),
    "deliveries_after": ("query", "after", _after("event")),
    "deliveries_limit": (
        "query",
        "limit",
        _limit(limits.DELIVERIES_PAGE_DEFAULT, limits.DELIVERIES_PAGE_MAX),
    ),
    "from_day": (
        "query",
        "from",
        day("The first UTC day; by default the first of the month of the last.", "2026-01-01"),
    ),
    "to_day": (
        "query",
        "to",
        day(
            f"The last UTC day, included; by default today. At most {limits.STATEMENT_DAYS_MAX} days in all.",
            "2026-01-31",
        ),
    ),
    "statement_format": (
        "query",
        "format",
        choice("As an object, or as a sheet.", ("json", "csv")) | {"default": "json"},
    ),
    "files_after": ("query", "after", _after("file")),
    "files_limit": ("query", "limit", _limit(limits.FILES_PAGE_DEFAULT, limits.FILES_PAGE_MAX)),
    "order": (
        "query",
        "order",
        choice("By time of creation.", ("asc", "desc"), "desc") | {"default": "desc"},
    ),
    "purpose": ("query", "purpose", choice("Only files of this purpose.", PURPOSES, "batch")),
    "idempotency_key": (
        "header",
        "Idempotency-Key",
        text(
            "Makes retries safe: for 24 hours the same key and body return the first batch. Printable ASCII.",
            "spring-0042",
            minLength=1,
            maxLength=limits.IDEMPOTENCY_KEY_CHARS_MAX,
            pattern="^[!-~]+$",
        ),
    ),
    "retry_count": (
        "header",
        "X-Stainless-Retry-Count",
        text(
            "OpenAI's SDKs count their retries with it. A create that comes again with more than 0 within 30 minutes, "
            "with the same token, User-Agent and body, returns the first batch.",
            "0",
        ),
    ),
    "range": (
        "header",
        "Range",
        text(
            "One range of bytes, answered with 206. Several, or other units, get the whole.", "bytes=0-1023"
        ),
    ),
    "if_range": (
        "header",
        "If-Range",
        text("The `ETag` of the part that you have: if the file has changed, the whole comes.", '"9f86d0…"'),
    ),
}


def components(used: Collection[str]) -> dict[str, dict[str, Any]]:
    """Those of these parameters, by the names that operations give them."""
    return {
        key: _parameter(place, name, schema, required=False)
        for key, (place, name, schema) in _SCHEMAS.items()
        if key in used
    }


def names() -> set[str]:
    """Every parameter that an operation may take."""
    return set(_SCHEMAS)


def in_path(variable: str) -> dict[str, Any]:
    """The parameter for a variable of a route."""
    return _parameter("path", variable, IN_PATH[variable], required=True)


def in_query(key: str) -> bool:
    """Whether the parameter comes in the query."""
    return _SCHEMAS[key][0] == "query"


def name_of(key: str) -> str:
    """The parameter's name as a request gives it."""
    return _SCHEMAS[key][1]


def _parameter(place: str, name: str, schema: Schema, *, required: bool) -> dict[str, Any]:
    shown = {key: value for key, value in schema.items() if key not in ("description", "examples")}
    return {
        "name": name,
        "in": place,
        "required": required,
        "description": schema["description"],
        "schema": shown,
        "example": schema["examples"][0],
    }
