"""What the calls about uploads in parts take and give."""

from api.reference.file_schemas import CREATED, PRINTABLE, filename
from api.reference.shapes import (
    Schema,
    choice,
    constant,
    identity,
    listed,
    moment,
    nullable,
    request,
    see,
    text,
    thing,
    whole,
)
from gridline import limits
from gridline.files import requests
from gridline.files.uploads import UploadStatus
from gridline.profiles.profile import Profile


def schemas(profile: Profile) -> dict[str, Schema]:
    """Components by name, with the caps of the dialect."""
    return {
        "UploadCreate": _create(profile),
        "Upload": _upload(),
        "UploadPartForm": request(
            "A part of the file, as a form.",
            {
                "data": {
                    "type": "string",
                    "contentMediaType": "application/octet-stream",
                    "description": "The file part, under any file name: the next bytes of the file, at least one, at "
                    f"most {limits.UPLOAD_PART_BYTES_MAX:,}.",
                    "examples": ["…"],
                }
            },
            required=("data",),
        ),
        "UploadPart": thing(
            "A part that is stored.",
            {
                "id": identity("upload_part", "The part's id."),
                "object": constant("upload.part", "Always `upload.part`."),
                "created_at": moment("When it was stored.", CREATED),
                "upload_id": identity("upload", "Its upload."),
            },
        ),
        "UploadComplete": _complete(),
    }


def _create(profile: Profile) -> Schema:
    keys = {
        "filename": filename(),
        "purpose": constant("batch", "Always `batch`."),
        "bytes": whole(
            "The file's size: what its parts must add up to.", 4_096, least=1, most=profile.file_bytes_max
        ),
        "mime_type": text(
            "Any; no control characters.",
            "application/jsonl",
            maxLength=limits.MIME_TYPE_CHARS_MAX,
            pattern=f"^{PRINTABLE}*$",
        ),
        "expires_after": nullable(see("ExpiresAfter", "How long the file is kept, from its completion.")),
    }
    return request("A file that will come in parts.", keys, required=requests.UPLOAD_REQUIRED)


def _upload() -> Schema:
    return thing(
        "A file that comes in parts.",
        {
            "id": identity("upload", "The upload's id."),
            "object": constant("upload", "Always `upload`."),
            "bytes": whole("The size that its parts must add up to.", 4_096),
            "created_at": moment("When it was created.", CREATED),
            "filename": text("What the file will be called.", "requests.jsonl"),
            "purpose": constant("batch", "Always `batch`."),
            "status": choice("Only a pending one takes parts.", UploadStatus, "completed"),
            "expires_at": moment(
                "When it expires, if it is not completed.", CREATED + limits.UPLOAD_OPEN_SECONDS
            ),
            "file": nullable(see("File")),
        },
    )


def _complete() -> Schema:
    keys = {
        "part_ids": listed(
            text("A part's id.", identity("upload_part", "")["examples"][0]),
            "The parts, in the order of the file; each once.",
            least=1,
            most=limits.UPLOAD_PARTS_MAX,
        )
        | {"uniqueItems": True},
        "md5": nullable(
            text("The file's MD5: if it is another, there is no file.", "0" * 32, pattern="^[0-9a-fA-F]{32}$")
        ),
    }
    return request("Which parts the file is made of.", keys, required=requests.COMPLETE_REQUIRED)
