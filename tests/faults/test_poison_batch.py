"""A whole batch with poison in it, from the upload to the books, with jobs and engines as processes."""

import json

import pytest

from gridline.lines import partitions
from gridline.proof import platform as proof
from tests.faults.small_platform import CREDIT, SmallPlatform, requests

pytestmark = [pytest.mark.programs, pytest.mark.deep, pytest.mark.timeout(300)]

LINES = 1_000
POISON = (
    *["!overlong"] * 4,
    *["!status=400"] * 4,
    *["!die", "!sicken", "!die", "!die"],
    "!hang",
    *["!status=500"] * 3,
    *["!broken"] * 2,
    *["!nan"] * 2,
)
"""Over the context; a schema that the engine refuses; what kills it; what it never ends; what it fails to answer."""
CODES = {"!overlong": "context_length_exceeded", "!status=400": "invalid_request"}
KILLERS = sum(word in ("!die", "!sicken") for word in POISON)
DEATHS_A_KILLER_MAX = 3
"""In flight with many, in a group of the square root of them, alone."""


def test_a_batch_with_poison_delivers_everything_else(
    small_platform: SmallPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1,000 lines 20 are poison: 980 are delivered, 20 have their own codes and are free; no killer kills over 3 engines."""
    monkeypatch.setattr(partitions, "LINE_SECONDS_MAX", 15)
    every = LINES // len(POISON)
    words = {place * every + every // 2: word for place, word in enumerate(POISON)}
    batch_id = small_platform.create(
        requests(f"line {number:04d} {words.get(number, '')}" for number in range(LINES))
    )
    answer, log = small_platform.run(batch_id, seconds=200)
    assert answer == "done"
    ended = small_platform.finish(batch_id)
    delivered, errors = (small_platform.lines(one) for one in (ended.output_file_id, ended.error_file_id))
    unexpected = [one for one in errors if int(one["custom_id"][1:]) not in words]
    assert unexpected == [], log
    assert (ended.status, ended.completed, ended.failed) == ("completed", LINES - len(POISON), len(POISON))
    assert [one["custom_id"] for one in delivered] == [f"c{n}" for n in range(LINES) if n not in words]
    assert all(
        f"echo: line {one['custom_id'][1:].zfill(4)}" in json.dumps(one["response"]) for one in delivered
    )
    codes = {one["custom_id"]: one["response"]["body"]["error"]["code"] for one in errors}
    assert codes == {f"c{n}": CODES.get(word, "server_error") for n, word in words.items()}
    assert list(codes) == [f"c{n}" for n in words]
    usage = [one["response"]["body"]["usage"] for one in delivered]
    assert all(one["total_tokens"] == one["prompt_tokens"] + one["completion_tokens"] for one in usage)
    charge = sum(one["prompt_tokens"] * 10 + one["completion_tokens"] * 20 for one in usage)
    assert small_platform.balance() == (10 * CREDIT - charge, 0)
    assert proof.prove_with_files().broken == []
    deaths = [one for one in log if one["message"] == "the engine died"]
    assert KILLERS <= len(deaths) <= KILLERS * DEATHS_A_KILLER_MAX
    assert len(small_platform.engines()) == len(deaths) + 1
    assert log[-1]["engine_deaths"] == len(deaths)
