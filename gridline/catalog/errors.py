"""What can be wrong with the catalogue itself."""

from gridline.errors import GridlineError


class CatalogueInvalid(GridlineError):
    """Raised when an entry of catalog.toml cannot be used; the message names the entry and the key."""
