"""What can be wrong with the catalogue itself, and with what is imported into it."""

from gridline.errors import GridlineError, InvalidRequest


class CatalogueInvalid(GridlineError):
    """Raised when an entry of catalog.toml cannot be used; the message names the entry and the key."""


class AdapterInvalid(InvalidRequest):
    """Raised when a folder holds no adapter that can be served; the message names field, limit, value and next step."""
