"""Files: upload, list, look, download, delete. OpenAI's shapes; the rules are in gridline.files."""

import re
from typing import Any

from flask import Blueprint, Response, current_app, request

from api import auth, bodies, multipart, paging, queries, ranges, rates
from api.reference.operations import FORM, Content, operation
from gridline import limits, storage
from gridline.db.work import reading, unit_of_work
from gridline.errors import InvalidRequest, RateExceeded
from gridline.files import keeping, receiving, retention
from gridline.files.objects import PURPOSES, file_object
from gridline.telemetry import metrics

_ANCHOR = "expires_after[anchor]"
_SECONDS = "expires_after[seconds]"
_FIELDS = ("purpose", _ANCHOR, _SECONDS)

_REFUSED = (
    "invalid_type",
    "integer_below_min_value",
    "integer_above_max_value",
    "invalid_file_format",
    "empty_file",
    "invalid_encoding",
    "line_too_large",
    "invalid_json_line",
    "file_too_large",
    "too_many_requests_in_file",
    "limit_exceeded",
)

blueprint = queries.strict(auth.guard(Blueprint("files", __name__)))


class UploadForm:
    """The parts of ``POST /files``, in whatever order they come."""

    def __init__(self, incoming: receiving.Incoming) -> None:
        self._incoming = incoming
        self._fields: dict[str, str] = {}

    def field(self, name: str, value: str) -> None:
        """Take a text field; one that makes the upload useless is refused at once."""
        if name == "file":
            raise InvalidRequest(
                "Invalid 'file': expected a file part with a filename.", code="invalid_type", param="file"
            )
        if name not in _FIELDS:
            raise InvalidRequest(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
        if self._fields.setdefault(name, value) != value:
            raise InvalidRequest(f"Parameter '{name}' is given twice.", code="invalid_value", param=name)
        if name == "purpose" and value != receiving.PURPOSE_INPUT:
            raise InvalidRequest(
                "Invalid value for 'purpose'. Supported values are: 'batch'.",
                code="invalid_value",
                param="purpose",
            )

    def begin_file(self, name: str, filename: str) -> None:
        """Take the one file part."""
        if name != "file":
            raise InvalidRequest(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
        if self._incoming.filename is not None:
            raise InvalidRequest("Several files in one upload. Send one.", code="invalid_value", param="file")
        self._incoming.name(filename)

    def data(self, data: bytes) -> None:
        """Take the file's next bytes."""
        self._incoming.write(data)

    def finish(self) -> int | None:
        """Check what only the end can tell; the seconds of ``expires_after``, if given."""
        if self._incoming.filename is None:
            raise _missing("file")
        if "purpose" not in self._fields:
            raise _missing("purpose")
        if _ANCHOR not in self._fields and _SECONDS not in self._fields:
            return None
        seconds = self._fields.get(_SECONDS, "")
        if self._fields.get(_ANCHOR) != "created_at" or not re.fullmatch(r"[0-9]{1,12}", seconds):
            raise InvalidRequest(
                "Invalid 'expires_after': expected anchor 'created_at' and a whole number of seconds from "
                f"{limits.EXPIRES_AFTER_SECONDS_MIN} to {limits.EXPIRES_AFTER_SECONDS_MAX}.",
                code="invalid_value",
                param="expires_after",
            )
        return retention.check_expires_after(int(seconds), "expires_after")


@blueprint.post("/files")
@operation(
    "Files", "createFile", "Upload a file", body=Content("FileUpload", FORM), returns="File", refuses=_REFUSED
)
def create_file() -> dict[str, Any]:
    """Store an upload as it streams in; on any refusal nothing of it is left."""
    who = auth.caller()
    bodies.refuse_encoded()
    rates.admit_upload(who.account_id, request.content_length)
    with unit_of_work() as work:
        receiving.check_room(work, who.account_id)
    with receiving.receive(storage.store(), who.account_id, current_app.config["PROFILE"]) as incoming:
        form = UploadForm(incoming)
        try:
            multipart.read_form(form)
        finally:
            rates.count_upload(who.account_id, incoming.bytes)
        expires_after_seconds = form.finish()
    file = receiving.keep(storage.store(), incoming, expires_after_seconds=expires_after_seconds)
    metrics.UPLOADED_BYTES.inc(file.bytes)
    return file_object(file)


@blueprint.get("/files")
@operation(
    "Files",
    "listFiles",
    "List files",
    parameters=("files_after", "files_limit", "order", "purpose"),
    returns="FileList",
    refuses=("not_found",),
)
def list_files() -> dict[str, Any]:
    """One page of the account's files, newest first unless ``order=asc``."""
    limit = paging.query_limit(default=limits.FILES_PAGE_DEFAULT, most=limits.FILES_PAGE_MAX)
    order = paging.query_one_of("order", ("asc", "desc"))
    purpose = paging.query_one_of("purpose", PURPOSES)
    with reading() as work:
        files, has_more = keeping.page(
            work,
            account_id=auth.caller().account_id,
            purpose=purpose,
            after=paging.query("after"),
            limit=limit,
            oldest_first=order == "asc",
        )
    return paging.page_object([file_object(file) for file in files], has_more=has_more)


@blueprint.get("/files/<file_id>")
@operation("Files", "retrieveFile", "Look at a file", returns="File", refuses=("not_found",))
def show_file(file_id: str) -> dict[str, Any]:
    """One file's object."""
    with reading() as work:
        return file_object(keeping.get(work, account_id=auth.caller().account_id, file_id=file_id))


@blueprint.get("/files/<file_id>/content")
@operation(
    "Files",
    "downloadFile",
    "Download a file",
    parameters=("range", "if_range"),
    returns=dict.fromkeys((200, 206), Content("FileContent", "application/jsonl")),
    refuses=("not_found", "range_not_satisfiable"),
    sends=("Accept-Ranges", "ETag", "Content-Disposition", "Content-Range", "Cache-Control"),
)
def download_file(file_id: str) -> Response:
    """The file's bytes."""
    who = auth.caller()
    with reading() as work:
        file = keeping.get(work, account_id=who.account_id, file_id=file_id)
    response = ranges.download(storage.store(), file)
    try:
        if request.method != "HEAD":
            rates.admit_download(who.account_id, response.content_length or 0)
    except RateExceeded:
        response.close()
        raise
    return response


@blueprint.delete("/files/<file_id>")
@operation(
    "Files", "deleteFile", "Delete a file", returns="FileDeleted", refuses=("not_found", "file_in_use")
)
def delete_file(file_id: str) -> dict[str, Any]:
    """Delete a file that no live batch reads."""
    who = auth.caller()
    with unit_of_work() as work:
        file = keeping.delete(work, account_id=who.account_id, file_id=file_id, actor=who.actor)
    # After the commit: a crash between the two leaves an object that nobody sees, never a row without one.
    storage.store().delete(file.object_key)
    return {"id": file.id, "object": "file", "deleted": True}


def _missing(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name
    )
