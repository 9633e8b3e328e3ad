"""The order that starts a GPU job: where its partition is, where it writes, and until when."""

import json
from dataclasses import dataclass

from gridline.storage import layout


@dataclass(frozen=True)
class JobOrder:
    """One attempt at one partition, as the job's only argument."""

    spec_key: str
    """The partition's spec object."""
    attempt_prefix: str
    """Where this attempt writes; the platform made it for this lease alone."""
    earlier_prefixes: tuple[str, ...] = ()
    """Earlier attempts at the partition: what stands in their segments is not done again."""
    deadline_unix: int | None = None
    """Unix second at which the job stops by itself."""

    @property
    def lease_id(self) -> str:
        """The lease that the order was made for."""
        return layout.lease_of(self.attempt_prefix)

    def to_json(self) -> str:
        """The order as the job's argument."""
        return json.dumps(
            {
                "spec_key": self.spec_key,
                "attempt_prefix": self.attempt_prefix,
                "earlier_prefixes": list(self.earlier_prefixes),
                "deadline_unix": self.deadline_unix,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "JobOrder":
        """Read an order; KeyError when a part of it is missing."""
        fields = json.loads(text)
        return cls(
            spec_key=fields["spec_key"],
            attempt_prefix=fields["attempt_prefix"],
            earlier_prefixes=tuple(fields["earlier_prefixes"]),
            deadline_unix=fields["deadline_unix"],
        )
