"""Uploads in parts: create, add parts, complete, cancel. OpenAI's shapes; the rules are in gridline.files."""

from typing import Any

from flask import Blueprint, current_app, request

from api import auth, bodies, multipart, queries, rates
from api.reference.operations import FORM, Content, operation
from gridline import storage
from gridline.db.work import reading, unit_of_work
from gridline.errors import InvalidRequest
from gridline.files import assembling, parts, uploads
from gridline.files.objects import part_object, upload_object
from gridline.files.requests import parse_complete, parse_upload
from gridline.telemetry import metrics

_REFUSED = (
    "empty_array",
    "array_above_max_length",
    "upload_bytes_mismatch",
    "md5_mismatch",
    "upload_not_pending",
    "invalid_file_format",
    "empty_file",
    "invalid_encoding",
    "line_too_large",
    "invalid_json_line",
    "file_too_large",
    "too_many_requests_in_file",
    "limit_exceeded",
)

blueprint = queries.strict(auth.guard(Blueprint("uploads", __name__)))


class PartForm:
    """The one part of ``POST /uploads/{id}/parts``."""

    def __init__(self, incoming: parts.IncomingPart) -> None:
        self._incoming = incoming
        self._begun = False

    def field(self, name: str, value: str) -> None:  # noqa: ARG002 - the form gives it
        """Take no text field: a part is bytes, and what has no filename comes as text."""
        if name == "data":
            raise InvalidRequest(
                "Invalid 'data': expected a file part with a filename, whatever its name.",
                code="invalid_type",
                param="data",
            )
        raise _unknown(name)

    def begin_file(self, name: str, filename: str) -> None:  # noqa: ARG002 - as above
        """Take the one file part; its name and type mean nothing."""
        if name != "data":
            raise _unknown(name)
        if self._begun:
            raise InvalidRequest(
                "Several parts in one request. Send each in a request of its own.",
                code="invalid_value",
                param="data",
            )
        self._begun = True

    def data(self, data: bytes) -> None:
        """Take the part's next bytes."""
        self._incoming.write(data)

    def finish(self) -> None:
        """Check what only the end can tell."""
        if not self._begun:
            raise InvalidRequest(
                "Missing required parameter: 'data'.", code="missing_required_parameter", param="data"
            )


@blueprint.post("/uploads")
@operation(
    "Uploads",
    "createUpload",
    "Create an upload",
    body="UploadCreate",
    returns="Upload",
    refuses=(
        "string_above_max_length",
        "integer_below_min_value",
        "integer_above_max_value",
        "invalid_file_format",
        "file_too_large",
        "limit_exceeded",
    ),
)
def create_upload() -> dict[str, Any]:
    """Open an upload for a file of a known size."""
    wanted = parse_upload(bodies.json_body(), current_app.config["PROFILE"])
    with unit_of_work() as work:
        upload = uploads.create(work, account_id=auth.caller().account_id, request=wanted)
    return upload_object(upload)


@blueprint.post("/uploads/<upload_id>/parts")
@operation(
    "Uploads",
    "addUploadPart",
    "Add a part",
    body=Content("UploadPartForm", FORM),
    returns="UploadPart",
    refuses=(
        "not_found",
        "invalid_type",
        "empty_part",
        "part_too_large",
        "upload_too_large",
        "too_many_parts",
        "upload_not_pending",
    ),
)
def add_part(upload_id: str) -> dict[str, Any]:
    """Store one part as it streams in; on any refusal nothing of it is left."""
    account_id = auth.caller().account_id
    with reading() as work:
        room = parts.room(work, account_id=account_id, upload_id=upload_id)
    bodies.refuse_encoded()
    rates.admit_upload(account_id, request.content_length)
    with parts.receive(storage.store(), room) as incoming:
        form = PartForm(incoming)
        try:
            multipart.read_form(form)
        finally:
            rates.count_upload(account_id, incoming.bytes)
        form.finish()
    return part_object(parts.keep(storage.store(), incoming))


@blueprint.post("/uploads/<upload_id>/complete")
@operation(
    "Uploads",
    "completeUpload",
    "Complete an upload",
    body="UploadComplete",
    returns="Upload",
    refuses=(*_REFUSED, "not_found"),
)
def complete_upload(upload_id: str) -> dict[str, Any]:
    """Make the file of its parts; the same call again answers the same."""
    account_id = auth.caller().account_id
    with reading() as work:
        # First of all: another account's upload and none get one answer, whatever the body is.
        uploads.get(work, account_id=account_id, upload_id=upload_id)
    wanted = parse_complete(bodies.json_body())
    profile = current_app.config["PROFILE"]
    done = assembling.complete(storage.store(), profile, wanted, account_id=account_id, upload_id=upload_id)
    if done.fresh and done.file is not None:
        metrics.UPLOADED_BYTES.inc(done.file.bytes)
    return upload_object(done.upload, done.file)


@blueprint.post("/uploads/<upload_id>/cancel")
@operation(
    "Uploads",
    "cancelUpload",
    "Cancel an upload",
    returns="Upload",
    refuses=("not_found", "upload_not_pending"),
)
def cancel_upload(upload_id: str) -> dict[str, Any]:
    """End an upload without a file."""
    with unit_of_work() as work:
        upload = uploads.cancel(work, account_id=auth.caller().account_id, upload_id=upload_id)
    # After the commit: a crash between the two leaves objects that nobody sees, and the keeper sweeps them.
    uploads.drop_parts(storage.store(), upload)
    return upload_object(upload)


def _unknown(name: str) -> InvalidRequest:
    return InvalidRequest(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
