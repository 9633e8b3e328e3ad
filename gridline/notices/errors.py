"""Errors of addresses that webhooks name. Their words hold the host at most: a path or query may carry a secret."""

from gridline.errors import InvalidRequest


class AddressRefused(InvalidRequest):
    """Raised for a URL that webhooks may not use, or whose host stands on a network that is not public."""

    default_code = "invalid_value"


class HostNotFound(InvalidRequest):
    """Raised when a URL's host has no address, or none was found in time."""

    default_code = "invalid_value"
