"""What can be wrong with a file, or with the moment for deleting one."""

from gridline.errors import Conflict, InvalidRequest, TooLarge


class FileRefused(InvalidRequest):
    """Raised for a file that cannot be a batch input, whatever its later lines hold."""

    default_code = "invalid_file_format"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message, code=code, param="file")


class FileTooLarge(TooLarge):
    """Raised when a file has too many bytes or requests; ``limit`` says which."""


class UploadNotPending(InvalidRequest):
    """Raised when an upload has ended, or expired, and the call needs one that is pending."""

    default_code = "upload_not_pending"


class FileInUse(Conflict):
    """Raised when a file is to be deleted that a live batch reads."""

    default_code = "file_in_use"
