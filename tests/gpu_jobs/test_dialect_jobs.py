"""Jobs for partitions of responses and messages, on a stub engine."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gridline.lines import endpoints
from gridline.lines.exits import JobExit
from tests.gpu_jobs.conftest import Partition

pytestmark = pytest.mark.programs

BODIES: dict[str, list[dict[str, Any]]] = {
    endpoints.RESPONSES: [
        {"input": "one two", "max_output_tokens": 8, "store": False},
        {"input": [{"type": "message", "role": "user", "content": "three !cut"}], "max_output_tokens": 8},
        {"input": "four !overlong", "max_output_tokens": 8},
    ],
    endpoints.MESSAGES: [
        {"messages": [{"role": "user", "content": "one two"}], "max_tokens": 8},
        {"messages": [{"role": "user", "content": "three !cut"}], "max_tokens": 8, "system": "Be brief."},
        {"messages": [{"role": "user", "content": "four !overlong"}], "max_tokens": 8},
    ],
}


@pytest.mark.parametrize("endpoint", BODIES)
def test_lines_go_to_their_endpoint(partition: Partition, endpoint: str) -> None:
    """Each line has its own answer, cut ones are delivered and charged, a refused one has OpenAI's error object and is free."""
    partition = replace(partition, endpoint=endpoint)
    partition.write([], bodies=BODIES[endpoint])
    assert partition.run() is JobExit.DONE
    assert partition.codes() == [None, None, "context_length_exceeded"]
    rows = partition.rows()
    assert [(row.input_tokens, row.output_tokens) for row in rows] == [(2, 3), (2, 3), (0, 0)]
    assert sorted(partition.sent()) == ["four !overlong", "one two", "three !cut"]
    assert "echo: one two" in rows[0].body
    assert json.loads(rows[2].body)["error"]["code"] == "context_length_exceeded"
    ((lines, *tokens),) = partition.usage("acct_1").values()
    assert (lines, tokens) == (2, [4, 6])
