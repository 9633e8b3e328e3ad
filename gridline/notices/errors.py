"""Errors of notices: addresses that webhooks name, codes that were mailed. The words about an address hold the host at most: a path or query may carry a secret."""

from gridline.errors import Conflict, InvalidRequest


class AddressRefused(InvalidRequest):
    """Raised for a URL that webhooks may not use, or whose host stands on a network that is not public."""

    default_code = "invalid_value"


class HostNotFound(InvalidRequest):
    """Raised when a URL's host has no address, or none was found in time."""

    default_code = "invalid_value"


class MailNotSetUp(Conflict):
    """Raised when mails are asked for on a platform that sends none."""

    default_code = "mail_not_set_up"


class CodeWrong(InvalidRequest):
    """Raised for a code that is not the one that was mailed."""

    default_code = "invalid_code"


class CodeOver(InvalidRequest):
    """Raised for a code that came too late or after too many others, and where none was asked for."""

    default_code = "code_expired"
