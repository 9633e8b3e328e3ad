"""Every code that a call may be refused with: its status and its meaning. docs/errors.md holds the same codes."""

from collections.abc import Iterable

from api.reference.operations import FORM, JSON, Operation

REFUSALS: dict[str, tuple[int, str]] = {
    "invalid_json": (400, "the body is not JSON"),
    "invalid_multipart": (400, "the form is broken or cut short"),
    "invalid_type": (400, "a parameter has the wrong type"),
    "invalid_value": (400, "a parameter has a value that is not supported"),
    "missing_required_parameter": (400, "a parameter is missing"),
    "unknown_parameter": (400, "a parameter that this call does not know"),
    "string_above_max_length": (400, "a text is too long"),
    "string_below_min_length": (400, "a text is too short"),
    "object_above_max_properties": (400, "an object has too many keys"),
    "integer_below_min_value": (400, "a number is too small"),
    "integer_above_max_value": (400, "a number is too large"),
    "invalid_file_format": (400, "not a `.jsonl`, compressed, or in another encoding"),
    "empty_file": (400, "the file is empty"),
    "invalid_encoding": (400, "the file is not UTF-8"),
    "line_too_large": (400, "the first line has more bytes than a line may have"),
    "invalid_json_line": (400, "the first line is not JSON"),
    "empty_array": (400, "an array is empty"),
    "array_above_max_length": (400, "an array has too many entries"),
    "empty_part": (400, "a part without bytes"),
    "upload_bytes_mismatch": (400, "the parts do not add up to the size that the upload was created with"),
    "md5_mismatch": (400, "the parts together have another MD5"),
    "upload_not_pending": (400, "the upload has ended or expired"),
    "invalid_code": (400, "not the code that was mailed"),
    "code_expired": (400, "the code came too late, after too many wrong ones, or none was asked for"),
    "invalid_api_key": (401, "the token is missing, malformed, unknown or revoked"),
    "invalid_credentials": (401, "no user has this e-mail with this password"),
    "invalid_id_token": (401, "the ID token is not the identity provider's for this sign-in, or no longer"),
    "insufficient_permissions": (
        403,
        "the token lacks the scope that the call needs (`read`, `routing:write`), or the call needs a session",
    ),
    "sign_up_closed": (403, "customers do not sign up by themselves here"),
    "email_not_verified": (403, "the identity provider does not say that the e-mail is the user's"),
    "not_found": (404, "the object does not exist, or belongs to another account"),
    "results_gone": (404, "the batch has ended and its partial results are deleted; its files may be there"),
    "model_not_found": (404, "the model does not exist or is not listed"),
    "conflict": (409, "the object's state forbids the call"),
    "email_taken": (409, "the e-mail has a user, and nothing shows that it is you"),
    "input_expires_too_early": (
        400,
        "under the account's retention the input would expire before the window ends",
    ),
    "mail_not_set_up": (409, "this platform sends no mail"),
    "file_in_use": (409, "a batch that has not ended reads the file"),
    "idempotency_conflict": (409, "the `Idempotency-Key` was used with another body in the last 24 h"),
    "file_too_large": (413, "the file has more bytes than a file may have"),
    "too_many_requests_in_file": (413, "the file holds more requests than a file may hold"),
    "part_too_large": (413, "the part has more bytes than a part may have"),
    "upload_too_large": (413, "the parts together are more than the upload may be sent"),
    "too_many_parts": (413, "the upload has as many parts as it may have"),
    "request_too_large": (413, "the request's body is over its limit"),
    "unsupported_media_type": (415, "the body has a type or an encoding that is not taken"),
    "range_not_satisfiable": (416, "the range lies outside the file"),
    "limit_exceeded": (429, "a limit of the account is used up; nothing was made"),
    "rate_limit_exceeded": (429, "too much came in a short time"),
    "server_error": (500, "a fault of ours"),
    "service_unavailable": (503, "the database, the store or the identity provider is away"),
}

_TOKEN = (
    "unknown_parameter",
    "invalid_api_key",
    "insufficient_permissions",
    "rate_limit_exceeded",
    "service_unavailable",
)
_BODIES = {
    JSON: (
        "invalid_json",
        "invalid_type",
        "unknown_parameter",
        "missing_required_parameter",
        "invalid_value",
    ),
    FORM: ("invalid_multipart", "unknown_parameter", "missing_required_parameter", "invalid_value"),
}
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def codes_of(said: Operation, *, token: bool, queries: bool) -> dict[int, list[str]]:
    """The codes that a call may be refused with, by status: those of every such call, and its own.

    ``token`` and ``queries`` say whether it asks for one, and whether it reads query parameters.
    """
    codes = ["server_error", *said.refuses]
    if token:
        codes += _TOKEN
    if queries:
        codes.append("invalid_value")
    if said.body is not None:
        codes += [*_BODIES[said.body.media_type], "request_too_large", "unsupported_media_type"]
    return _by_status(codes)


def error_type(status: int) -> str:
    """The ``type`` that errors of a status have."""
    server = 500
    return "server_error" if status >= server else _TYPES.get(status, "invalid_request_error")


def _by_status(codes: Iterable[str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for code in REFUSALS:
        if code in codes:
            found.setdefault(REFUSALS[code][0], []).append(code)
    return dict(sorted(found.items()))
