"""A whole batch in the second dialect, from the upload to the books, with its job and engine as processes."""

import json
from typing import Any

import pytest

from gridline.batches import reading
from gridline.catalog import cards
from gridline.db.work import unit_of_work
from gridline.lines import endpoints
from gridline.money import credits_text
from gridline.proof import platform as proof
from tests.dialects import speak
from tests.faults.small_platform import CREDIT, MODEL, SmallPlatform

pytestmark = pytest.mark.programs

ASKED: dict[str, list[dict[str, Any]]] = {
    endpoints.RESPONSES: [
        {"input": "one two", "max_output_tokens": 8},
        {"input": "kept", "max_output_tokens": 8, "store": True},
        {"input": "three !overlong", "max_output_tokens": 8},
        {"input": "four", "max_output_tokens": 8},
    ],
    endpoints.MESSAGES: [
        {"messages": [{"role": "user", "content": "one two"}], "max_tokens": 8},
        {"messages": [{"role": "user", "content": "kept"}], "max_tokens": 8, "store": True},
        {"messages": [{"role": "user", "content": "three !overlong"}], "max_tokens": 8},
        {"messages": [{"role": "user", "content": "four"}], "max_tokens": 8},
    ],
}


@pytest.mark.parametrize("endpoint", ASKED)
def test_a_batch_is_delivered_and_charged_at_half(
    small_platform: SmallPlatform, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    """Results in input order, the stored one and the long one fail alone, and the files prove a charge at half the rate."""
    (standard,) = cards.listed(None)  # type: ignore[arg-type]  # the one of this small platform
    sold = cards.sold(standard, speak(monkeypatch, "gridport"))
    monkeypatch.setattr(cards, "listed", lambda work: [sold])
    rows = [
        {"custom_id": f"c{number}", "method": "POST", "url": endpoint, "body": {"model": MODEL, **body}}
        for number, body in enumerate(ASKED[endpoint])
    ]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    batch_id = small_platform.create(data, endpoint=endpoint)
    answer, log = small_platform.run(batch_id)
    assert answer == "done", log
    ended = small_platform.finish(batch_id)
    delivered, errors = (small_platform.lines(one) for one in (ended.output_file_id, ended.error_file_id))
    assert [one["custom_id"] for one in delivered] == ["c0", "c3"]
    refused = [(one["custom_id"], one["response"]["body"]["error"]["code"]) for one in errors]
    assert refused == [("c1", "permission_denied"), ("c2", "context_length_exceeded")]
    used = [one["response"]["body"]["usage"] for one in delivered]
    charge = sum(one["input_tokens"] * 5 + one["output_tokens"] * 10 for one in used)
    assert small_platform.balance() == (10 * CREDIT - charge, 0)
    assert proof.prove_with_files().broken == []
    with unit_of_work() as work:
        shown = reading.show(work, account_id=small_platform.account_id, batch_id=batch_id)
    assert shown["tf"] == {"pricing_tier": "batch", "cost": credits_text(charge)}
    assert shown["usage"]["total_tokens"] == sum(one["input_tokens"] + one["output_tokens"] for one in used)
