"""What several rows look at: a batch's way through its statuses, errors by line, prices, engines."""

import itertools
import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.conformance.batch_service import Ended, Service
from tests.stack import command_of

STATUSES = {
    "validating": {"in_progress", "failed", "cancelling", "expired"},
    "in_progress": {"finalizing", "failed", "cancelling", "expired"},
    "finalizing": {"completed", "expired"},
    "cancelling": {"cancelled"},
    "completed": set(),
    "failed": set(),
    "expired": set(),
    "cancelled": set(),
}
"""Each status and those that may follow it at once."""


def check_way(seen: list[dict[str, Any]]) -> None:
    """These looks at one batch follow legal edges, and what was once set (an id, a time) never changes."""
    for before, after in itertools.pairwise(seen):
        old, new = before["status"], after["status"]
        assert old == new or new in _reachable(old), f"{old} -> {new}"
        kept = {
            key: value for key, value in before.items() if key.endswith(("_at", "_id")) and value is not None
        }
        assert kept.items() <= after.items(), f"{kept} became {after}"


def _reachable(status: str) -> set[str]:
    """What a poll may see next: it may miss statuses between."""
    found = set(STATUSES[status])
    return found.union(*(_reachable(one) for one in found))


def by_line(errors: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The entries of ``errors.data`` by line; a line is there once."""
    found = {one["line"]: one for one in errors}
    assert len(found) == len(errors), errors
    return found


def refusals(service: Service, bodies: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The errors of chat lines with these bodies, one a line, in order; a good line behind them is not among them."""
    lines = [service.chat_line(f"bad-{number}", **body) for number, body in enumerate(bodies, 1)]
    errors = by_line(service.expect_fail([*lines, service.chat_line("good")]))
    assert sorted(errors) == list(range(1, len(lines) + 1)), errors
    return [errors[number] for number in sorted(errors)]


def refused_keys(service: Service, bodies: Iterable[dict[str, Any]]) -> None:
    """Each of these one-key bodies is refused on its line, by the name of its key."""
    given = list(bodies)
    for body, error in zip(given, refusals(service, given), strict=True):
        (key,) = body
        assert error["code"] == "invalid_request", (body, error)
        assert error["param"] == f"body.{key}", (body, error)
        assert key in error["message"], (body, error)


def bodies(ended: Ended) -> dict[str, dict[str, Any]]:
    """The answers by custom_id."""
    return {one["custom_id"]: one["response"]["body"] for one in ended.out}


def texts(body: dict[str, Any]) -> list[str]:
    """The texts of a chat answer."""
    found = [one["message"]["content"] for one in body["choices"]]
    assert all(isinstance(one, str) for one in found), body
    return found


def failures(ended: Ended) -> dict[str, str]:
    """Codes of the error lines by custom_id: each has a reason, in the place that fits how far it came."""
    found = {}
    for one in ended.err:
        assert one["id"]
        response, error = one["response"], one["error"]
        assert (response is None) != (error is None), one
        if response is not None:
            assert 400 <= response["status_code"] < 600, one
            assert response["request_id"]
            error = response["body"]["error"]
            assert {"message", "type", "param", "code"} <= error.keys(), one
        assert error["code"], one
        assert error["message"], one
        found[one["custom_id"]] = error["code"]
    return found


def strict_lines(data: bytes) -> list[Any]:
    """The lines of a file by a parser that takes no NaN and no Infinity."""

    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is no JSON")

    return [json.loads(line, parse_constant=refuse) for line in data.decode().split("\n") if line]


def prices(service: Service, model: str) -> tuple[int, int] | None:
    """Nano-credits for a token in and a token out; None where the service's list of models has no such prices."""
    for one in service.http.get("/models").json()["data"]:
        for details in one.values():
            if one["id"] == model and isinstance(details, dict) and "prices" in details:
                sides = (details["prices"][side]["nanos_per_token"] for side in ("input", "output"))
                return next(sides), next(sides)
    return None


def engine_pids(request: pytest.FixtureRequest) -> set[int] | None:
    """The processes of the engines that run now; None where the service's machine is not ours to look at."""
    try:
        operator = request.getfixturevalue("operator")
    except pytest.skip.Exception:
        return None
    return {one.pid for one in operator.processes() if "vllm.entrypoints" in command_of(one)}
