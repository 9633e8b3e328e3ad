"""The file object as the API shows it: every key that OpenAI's SDKs read."""

from typing import Any

from gridline.clock import unix
from gridline.files.tables import File


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
