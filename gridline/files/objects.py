"""Files, uploads and parts as the API shows them: every key that OpenAI's SDKs read."""

from typing import Any

from gridline.clock import unix
from gridline.files.tables import File, Upload, UploadPart

PURPOSES = (
    "assistants",
    "assistants_output",
    "batch",
    "batch_output",
    "fine-tune",
    "fine-tune-results",
    "vision",
    "user_data",
    "evals",
)
"""What a list may be filtered by: OpenAI's purposes. Files here have ``batch`` or ``batch_output``."""


def file_object(file: File) -> dict[str, Any]:
    """OpenAI's file object. ``status`` is deprecated there and still required: SDKs poll until "processed"."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.bytes,
        "created_at": unix(file.created_at),
        "expires_at": unix(file.expires_at),
        "filename": file.filename,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }


def upload_object(upload: Upload, file: File | None = None) -> dict[str, Any]:
    """OpenAI's upload object; ``file`` is what it became, None until then and once that file is deleted.

    The status is the stored one: no call shows an upload whose time is over, they refuse it.
    """
    return {
        "id": upload.id,
        "object": "upload",
        "bytes": upload.bytes,
        "created_at": unix(upload.created_at),
        "filename": upload.filename,
        "purpose": upload.purpose,
        "status": upload.status,
        "expires_at": unix(upload.expires_at),
        "file": None if file is None else file_object(file),
    }


def part_object(part: UploadPart) -> dict[str, Any]:
    """OpenAI's part of an upload."""
    return {
        "id": part.id,
        "object": "upload.part",
        "created_at": unix(part.created_at),
        "upload_id": part.upload_id,
    }
