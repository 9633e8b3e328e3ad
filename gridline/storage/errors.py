"""What can go wrong with an object: missing, a key that is not ours, or a store that is away."""

from gridline.errors import InvariantBroken, NotFound, Unavailable


class ObjectMissing(NotFound):
    """Raised when there is no object under the key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"There is no object {key!r} in the store.")
        self.key = key


class KeyRefused(InvariantBroken):
    """Raised for a key that could name something outside its place; keys are server-made, so it is our bug."""


class StoreUnavailable(Unavailable):
    """Raised when the store cannot be read or written for now: disk full, no permission, network away."""
