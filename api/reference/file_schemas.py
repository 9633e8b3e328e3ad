"""What the calls about files and uploads take and give."""

from api.reference.shapes import (
    Schema,
    choice,
    constant,
    empty,
    identity,
    moment,
    nullable,
    page,
    request,
    see,
    text,
    thing,
    whole,
)
from gridline import limits
from gridline.profiles.profile import Profile

CREATED, EXPIRES = 1767614400, 1770206400
PRINTABLE = r"[^\u0000-\u001f\u007f]"
"""What no control character is, in a pattern."""
PURPOSES = ("batch", "batch_output")
_LINE = '{"custom_id": "a-1", "method": "POST", "url": "/v1/embeddings", "body": {"model": "…", "input": "Hello"}}\n'


def schemas(profile: Profile) -> dict[str, Schema]:
    """Components by name, with the caps of the dialect."""
    return {
        "File": _file(),
        "FileList": page("File"),
        "FileDeleted": thing(
            "That a file is deleted.",
            {
                "id": identity("file", "The file."),
                "object": constant("file", "Always `file`."),
                "deleted": constant(value=True, meaning="Always true."),
            },
        ),
        "FileUpload": _upload_form(profile),
        "FileContent": {
            "type": "string",
            "description": "The file's bytes: JSONL, one JSON object on each line. Lines of an input are "
            "`InputLine`, those of an output or error file `OutputLine`.",
            "contentMediaType": "application/jsonl",
            "examples": [_LINE],
            "x-lines": {"anyOf": [see("InputLine"), see("OutputLine")]},
        },
        "ExpiresAfter": expires_after(),
    }


def filename() -> Schema:
    """A name that a file may have."""
    return text(
        "The file's name; it ends in `.jsonl`, and is echoed, never used as a path.",
        "requests.jsonl",
        maxLength=limits.FILENAME_CHARS_MAX,
        pattern=rf"^{PRINTABLE}*\.[jJ][sS][oO][nN][lL]$",
    )


def expires_after() -> Schema:
    """When a file is to expire."""
    return request(
        "How long a file is to be kept. An input is kept for at least the time that is promised, whatever is asked.",
        {
            "anchor": constant("created_at", "What the seconds count from: the file's creation."),
            "seconds": whole(
                "Seconds from the anchor.",
                86_400,
                least=limits.EXPIRES_AFTER_SECONDS_MIN,
                most=limits.EXPIRES_AFTER_SECONDS_MAX,
            ),
        },
        required=("anchor", "seconds"),
    )


def _file() -> Schema:
    return thing(
        "A stored file.",
        {
            "id": identity("file", "The file's id."),
            "object": constant("file", "Always `file`."),
            "bytes": whole("Its size in bytes.", 4_096),
            "created_at": moment("When it was stored.", CREATED),
            "expires_at": nullable(moment("When it will be deleted.", EXPIRES)),
            "filename": text("What it is called.", "requests.jsonl"),
            "purpose": choice(
                "`batch` for an input, `batch_output` for what a batch wrote (error files too).", PURPOSES
            ),
            "status": constant("processed", "Always `processed`: a file that can be seen can be used."),
            "status_details": empty(text("Nothing to tell.", "")),
        },
    )


def _upload_form(profile: Profile) -> Schema:
    return request(
        "An input for batches, as a form. Fields may come in any order.",
        {
            "file": {
                "type": "string",
                "contentMediaType": "application/octet-stream",
                "description": "The file part, with a file name that ends in `.jsonl`: UTF-8, one `InputLine` on each "
                f"line, at most {profile.file_bytes_max:,} bytes and {profile.file_lines_max:,} requests.",
                "examples": [_LINE],
                "x-lines": see("InputLine"),
            },
            "purpose": constant("batch", "Always `batch`."),
            "expires_after[anchor]": constant("created_at", "As in `ExpiresAfter`; needs the seconds too."),
            "expires_after[seconds]": whole(
                "As in `ExpiresAfter`; needs the anchor too.",
                86_400,
                least=limits.EXPIRES_AFTER_SECONDS_MIN,
                most=limits.EXPIRES_AFTER_SECONDS_MAX,
            ),
        },
        required=("file", "purpose"),
    ) | {
        "dependentRequired": {
            "expires_after[anchor]": ["expires_after[seconds]"],
            "expires_after[seconds]": ["expires_after[anchor]"],
        }
    }
