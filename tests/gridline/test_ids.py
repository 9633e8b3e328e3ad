"""Ids: shaped, random, or the same for the same cause."""

import pytest

from gridline import ids


@pytest.mark.parametrize("kind", ids.PREFIXES)
def test_a_new_id_has_its_kinds_shape(kind: str) -> None:
    """A prefix and 24 base62 characters, different each time."""
    first, second = ids.new(kind), ids.new(kind)
    assert first != second
    assert ids.is_id(kind, first)
    assert len(first) == len(ids.PREFIXES[kind]) + ids.RANDOM_CHARS


def test_a_derived_id_is_found_again() -> None:
    """The same parts give the same id in every process, other parts another one."""
    one = ids.derived("line", "batch_a", 7)
    assert one == ids.derived("line", "batch_a", 7)
    assert ids.is_id("line", one)
    assert one != ids.derived("line", "batch_a", 8)
    assert one == "batch_req_63EBkRQLHPUsS8iUufEOpIYF"


def test_parts_do_not_run_into_each_other() -> None:
    """("a", "bc") and ("ab", "c") are different causes."""
    assert ids.derived("hold", "a", "bc") != ids.derived("hold", "ab", "c")
    assert ids.derived("hold", "a")[5:] != ids.derived("lease", "a")[6:]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "batch_",
        "batch_" + "a" * 23,
        "batch_" + "a" * 25,
        "file-" + "a" * 24,
        "batch_" + "a" * 23 + "/",
        "batch_" + "a" * 24 + "\n",
    ],
)
def test_what_is_not_an_id_is_seen(value: str) -> None:
    """Wrong prefix, length or alphabet is not an id of this kind."""
    assert not ids.is_id("batch", value)
