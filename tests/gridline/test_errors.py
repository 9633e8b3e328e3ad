"""The error tree: one JSON shape, a status and a code each."""

import inspect
from typing import Any

import pytest

from gridline import errors
from gridline.errors import GridlineError, LimitExceeded, NotFound, RateExceeded, Refused

TREE = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, GridlineError)]


@pytest.mark.parametrize("kind", TREE)
def test_every_error_has_openais_shape(kind: type[GridlineError]) -> None:
    """The body holds message, type, param and code, all four, whatever the error."""
    # What came too fast always says the limit that it met.
    met: dict[str, Any] = {"limit": {"limit": 1}, "wait_seconds": 1} if kind is RateExceeded else {}
    body = kind("It did not work.", **met).body()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "type", "param", "code", *({"limit"} if met else ())}
    assert body["error"]["message"] == "It did not work."
    assert isinstance(body["error"]["type"], str)


def test_a_limit_rides_along_where_one_was_met() -> None:
    """A refusal for a limit says the limit and the use in figures."""
    body = LimitExceeded("Too many.", limit={"limit": 2, "used": 2}).body()
    assert body["error"]["limit"] == {"limit": 2, "used": 2}
    assert body["error"]["code"] == "limit_exceeded"


def test_a_caller_may_name_code_and_param() -> None:
    """A more exact code replaces the class's own."""
    error = NotFound("No file.", code="file_not_found", param="input_file_id")
    assert (error.status, error.code, error.param) == (404, "file_not_found", "input_file_id")


def test_only_what_may_heal_is_retryable() -> None:
    """What the caller must change first is never marked as worth a retry."""
    assert [one.__name__ for one in TREE if one.retryable] == ["RateExceeded", "Unavailable"]
    assert all(400 <= one.status < 500 for one in TREE if issubclass(one, Refused))


def test_the_tree_is_drawn_in_full() -> None:
    """The module's docstring draws every class of the tree."""
    assert [one.__name__ for one in TREE if one.__name__ not in (errors.__doc__ or "")] == []
