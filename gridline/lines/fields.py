"""Typed, ranged reading of one JSON object of a line. Null counts as absent; every refusal names its parameter."""

from typing import Any, NoReturn

from gridline.lines.errors import LineRefused

SHOWN_CHARS_MAX = 80

_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "an integer"}


def shown(value: object) -> str:
    """A value for a message, cut so that a list of a hundred errors stays small."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"


def kind_of(value: object) -> str:
    """What JSON calls the value."""
    return "null" if value is None else _NAMES.get(type(value), "a number")


def depth_of(value: object) -> int:
    """Levels of nesting; 0 for a value that holds no other. The parser's own limit bounds the recursion."""
    if type(value) is dict:
        return 1 + max(map(depth_of, value.values()), default=0)
    if type(value) is list:
        return 1 + max(map(depth_of, value), default=0)
    return 0


class Fields:
    """The keys of one object; ``path`` is how messages name it, e.g. ``body``."""

    __slots__ = ("path", "values")

    def __init__(self, values: dict[str, Any], path: str) -> None:
        self.values = values
        self.path = path

    def param(self, key: str) -> str:
        """How an error names this key."""
        return f"{self.path}.{key}"

    def refuse(self, key: str, message: str) -> NoReturn:
        """Refuse the line because of this key."""
        raise LineRefused(message, param=self.param(key))

    def wrong_type(self, key: str, expected: str) -> NoReturn:
        """Refuse the line because the key's value is of another type."""
        got = kind_of(self.values[key])
        self.refuse(key, f"Invalid type for '{key}': expected {expected}, but got {got} instead.")

    def only(self, allowed: frozenset[str]) -> None:
        """Refuse every key outside the list, unless it is null."""
        if self.values.keys() <= allowed:
            return
        for key, value in self.values.items():
            if key not in allowed and value is not None:
                self.refuse(key, f"Unsupported parameter: {shown(key)} is not supported in the Batch API.")

    def integer(self, key: str, low: int, high: int) -> int | None:
        """A whole number from low to high, both included."""
        value = self.values.get(key)
        if value is None:
            return None
        if type(value) is not int:
            self.wrong_type(key, "an integer")
        if not low <= value <= high:
            self.refuse(key, f"Invalid '{key}': expected {low} to {high}, but got {shown(value)} instead.")
        return value

    def number(self, key: str, low: float, high: float, *, low_included: bool = True) -> float | None:
        """A finite number from low to high; high is included, low unless said otherwise."""
        value = self.values.get(key)
        if value is None:
            return None
        if type(value) not in {int, float}:
            self.wrong_type(key, "a number")
        if not low <= value <= high or (value == low and not low_included):
            words = f"{low:g} to {high:g}" if low_included else f"above {low:g}, at most {high:g}"
            self.refuse(key, f"Invalid '{key}': expected {words}, but got {shown(value)} instead.")
        number: float = value
        return number

    def flag(self, key: str) -> bool | None:
        """A boolean."""
        value = self.values.get(key)
        if value is not None and type(value) is not bool:
            self.wrong_type(key, "a boolean")
        return value

    def text(self, key: str) -> str | None:
        """A string."""
        value = self.values.get(key)
        if value is not None and type(value) is not str:
            self.wrong_type(key, "a string")
        return value

    def not_streamed(self, endpoint: str = "Chat Completions") -> None:
        """``stream`` may be there as false, which is what a batch does anyway."""
        if self.flag("stream"):
            raise LineRefused(
                f"{endpoint}: Streaming is not supported in the Batch API.",
                code="streaming_unsupported",
                param=self.param("stream"),
            )
