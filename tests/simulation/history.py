"""What happened in a simulated world, in order: steps and ids, never a prompt. The same seed writes the same."""

from hashlib import sha256


class Violation(AssertionError):
    """A promise that did not hold in a simulated world."""


class History:
    """The log of one seed, and short names for its long ids."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def name(self, kind: str, long_id: str) -> str:
        """A short name for an id, the same from now on."""
        if long_id not in self._names:
            count = sum(one.startswith(kind) for one in self._names.values())
            self._names[long_id] = f"{kind}{count}"
        return self._names[long_id]

    def add(self, text: str) -> None:
        """Append a line."""
        self.lines.append(text)

    def digest(self) -> str:
        """What two histories are compared by."""
        return sha256("\n".join(self.lines).encode()).hexdigest()

    def told(self) -> str:
        """The whole history with its names, and how to see it again."""
        names = ", ".join(f"{short} = {long}" for long, short in self._names.items())
        body = "\n".join(self.lines)
        return f"{body}\n{names}\nAgain with: make simulate SEED={self.seed}"
