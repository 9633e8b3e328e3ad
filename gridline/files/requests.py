"""What the bodies of the Uploads API may hold: types, keys, ranges, in OpenAI's words. Knows neither HTTP nor the database."""

import re
from dataclasses import dataclass

from gridline import limits
from gridline.errors import InvalidRequest
from gridline.fields import array_of, bounded, integer_of, keys_of, one_of, short, text_of
from gridline.files.checking import check_filename
from gridline.files.errors import FileRefused, FileTooLarge
from gridline.files.receiving import PURPOSE_INPUT
from gridline.files.retention import read_expires_after
from gridline.profiles.profile import Profile

UPLOAD_KEYS = ("filename", "purpose", "bytes", "mime_type", "expires_after")
UPLOAD_REQUIRED = UPLOAD_KEYS[:4]
COMPLETE_KEYS = ("part_ids", "md5")
COMPLETE_REQUIRED = COMPLETE_KEYS[:1]

_MD5 = re.compile(r"[0-9a-fA-F]{32}")


@dataclass(frozen=True)
class UploadRequest:
    """An upload that is right in itself; ``bytes`` is the size that its parts must add up to."""

    filename: str
    purpose: str
    bytes: int
    mime_type: str
    expires_after_seconds: int | None = None


@dataclass(frozen=True)
class CompleteRequest:
    """The parts of a file in their order, and the hex MD5 (lower case) that they must have together."""

    part_ids: tuple[str, ...]
    md5: str | None = None


def parse_upload(body: object, profile: Profile) -> UploadRequest:
    """The upload that a JSON body asks for; null counts as absent.

    Raises:
        InvalidRequest: naming the first parameter that is missing, unknown, of the wrong type or out of range.
        FileTooLarge: more bytes than a file may have.
    """
    given = keys_of(body, known=UPLOAD_KEYS, required=UPLOAD_REQUIRED)
    return UploadRequest(
        filename=_filename(given["filename"]),
        purpose=one_of(given["purpose"], (PURPOSE_INPUT,), "purpose"),
        bytes=_bytes(given["bytes"], profile.file_bytes_max),
        mime_type=_mime_type(given["mime_type"]),
        expires_after_seconds=read_expires_after(given.get("expires_after"), "expires_after"),
    )


def parse_complete(body: object) -> CompleteRequest:
    """The completion that a JSON body asks for; null counts as absent.

    Raises:
        InvalidRequest: naming the first parameter that is missing, unknown, of the wrong type or out of range.
    """
    given = keys_of(body, known=COMPLETE_KEYS, required=COMPLETE_REQUIRED)
    return CompleteRequest(part_ids=_part_ids(given["part_ids"]), md5=_md5(given.get("md5")))


def _filename(value: object) -> str:
    try:
        return check_filename(text_of(value, "filename"))
    except FileRefused as refused:
        # Here the name is a parameter of its own.
        refused.param = "filename"
        raise


def _bytes(value: object, most: int) -> int:
    size = integer_of(value, "bytes")
    if size < 1:
        raise InvalidRequest(
            "Invalid 'bytes': integer below minimum value. Expected a value >= 1: an empty file holds no request.",
            code="integer_below_min_value",
            param="bytes",
        )
    if size > most:
        raise FileTooLarge(
            f"The file would be larger than {most} bytes, the most that one file may have. Split it into several.",
            param="bytes",
            limit={"name": "file_bytes", "limit": most, "unit": "bytes"},
        )
    return size


def _mime_type(value: object) -> str:
    text = bounded(text_of(value, "mime_type"), limits.MIME_TYPE_CHARS_MAX, "mime_type")
    if any(char < " " or char == "\x7f" for char in text):
        raise InvalidRequest(
            "Invalid 'mime_type': it holds control characters. Send one like 'application/jsonl'.",
            code="invalid_value",
            param="mime_type",
        )
    return text


def _part_ids(value: object) -> tuple[str, ...]:
    given = array_of(value, "part_ids")
    if not given:
        raise InvalidRequest(
            "Invalid 'part_ids': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            code="empty_array",
            param="part_ids",
        )
    if len(given) > limits.UPLOAD_PARTS_MAX:
        raise InvalidRequest(
            f"Invalid 'part_ids': array too long. Expected an array with maximum length {limits.UPLOAD_PARTS_MAX}, "
            f"but got an array with length {len(given)} instead.",
            code="array_above_max_length",
            param="part_ids",
        )
    seen: set[str] = set()
    for number, one in enumerate(given):
        part_id = text_of(one, f"part_ids[{number}]")
        if part_id in seen:
            raise InvalidRequest(
                f"Invalid 'part_ids': part '{short(part_id)}' is named twice. Name each part once.",
                code="invalid_value",
                param="part_ids",
            )
        seen.add(part_id)
    return tuple(given)


def _md5(value: object) -> str | None:
    if value is None:
        return None
    text = text_of(value, "md5")
    if not _MD5.fullmatch(text):
        raise InvalidRequest(
            "Invalid 'md5': expected the file's MD5 as 32 hexadecimal digits.",
            code="invalid_value",
            param="md5",
        )
    return text.lower()
