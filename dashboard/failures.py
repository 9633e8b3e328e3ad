"""Failed lines of a batch, grouped by code: how many, what mends them, and the first few with what was said. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from gridline.client.retrying import lines_of

READ_BYTES_MAX = 1 << 20
"""Of the error file no more than this is read for the page; the file itself has the rest."""
SHOWN_PER_CODE = 20


@dataclass
class Group:
    """The failed lines with one code."""

    code: str
    lines: int = 0
    first: list[tuple[str, str]] = field(default_factory=list)
    """custom_id and message of the first few."""


@dataclass(frozen=True)
class Failures:
    """What was read of an error file: its groups, the largest first, and whether that was all of it."""

    groups: tuple[Group, ...]
    whole: bool


def read(chunks: Iterable[bytes]) -> Failures:
    """Group the lines of an error file, or of its beginning."""
    taken, whole, size = [], True, 0
    for chunk in chunks:
        size += len(chunk)
        taken.append(chunk)
        if size > READ_BYTES_MAX:
            whole = False
            break
    lines = list(lines_of(taken))
    groups: dict[str, Group] = {}
    for line in lines if whole else lines[:-1]:
        custom_id, code, message = _told(json.loads(line))
        group = groups.setdefault(code, Group(code))
        group.lines += 1
        if len(group.first) < SHOWN_PER_CODE:
            group.first.append((custom_id, message))
    return Failures(tuple(sorted(groups.values(), key=lambda one: (-one.lines, one.code))), whole)


def _told(line: dict[str, dict[str, dict[str, dict[str, str]]]]) -> tuple[str, str, str]:
    """custom_id, code and message: of the answer's error, or of a line that never ran."""
    error = line["error"] or line["response"]["body"]["error"]
    return str(line["custom_id"]), str(error["code"]), str(error["message"])
