"""What a customer does, with the unmodified `openai` package: upload, create, poll, download. Knows no database."""

import json
import time
from collections.abc import Callable
from typing import Any, Literal

import openai

from gridline.client import Client
from gridline.errors import Unavailable
from gridline.money import credits_text
from gridline.operate.demo.setting import Customer
from gridline.profiles.profile import current
from gridline.settings import Settings

POLL_SECONDS = 0.5
BATCH_SECONDS_MAX = 600
CLIENT_SECONDS_MAX = 60
SHOWN_CHARS = 100
Endpoint = Literal["/v1/chat/completions", "/v1/embeddings"]
ENDED = {"completed", "failed", "expired", "cancelled"}


def balance(config: Settings, who: Customer) -> str:
    """Available and held credit, as the API tells the customer."""
    with Client(config.public_api_url, who.token) as client:
        account = client.account()
    return (
        f"{credits_text(account.available_nanos)} credits available, {credits_text(account.held_nanos)} held"
    )


def run_batch(
    config: Settings, who: Customer, file: bytes, *, endpoint: Endpoint, say: Callable[[str], None]
) -> None:
    """One batch from upload to results, with its progress, answers and receipt.

    Raises:
        Unavailable: the batch did not complete, or a line failed.
    """
    client = openai.OpenAI(
        base_url=f"{config.public_api_url}{current().base_paths[0]}",
        api_key=who.token,
        timeout=CLIENT_SECONDS_MAX,
    )
    uploaded = client.files.create(file=("demo.jsonl", file), purpose="batch")
    batch = client.batches.create(
        input_file_id=uploaded.id,
        endpoint=endpoint,
        completion_window="24h",
    )
    say(f"  {batch.id} created from {uploaded.id}")
    batch = _wait(client, batch, say)
    if batch.status != "completed" or batch.error_file_id or not batch.output_file_id:
        raise Unavailable(f"The batch ended {batch.status}: {batch.errors or batch.error_file_id or ''}")
    requests = {line["custom_id"]: line["body"] for line in map(json.loads, file.decode().splitlines())}
    for line in map(json.loads, client.files.content(batch.output_file_id).text.splitlines()):
        say(f"  {line['custom_id']}: {_exchange(requests[line['custom_id']], line['response']['body'])}")
    with Client(config.public_api_url, who.token) as ours:
        receipt = ours.receipt(batch.id)
    say(
        f"  receipt: {receipt.lines} lines, {receipt.input_tokens} tokens in, {receipt.output_tokens} out; "
        f"held {credits_text(receipt.hold_nanos)}, charged {credits_text(receipt.charged_nanos or 0)}, "
        f"returned {credits_text(receipt.returned_nanos or 0)}"
    )


def _wait(client: openai.OpenAI, batch: Any, say: Callable[[str], None]) -> Any:
    until = time.monotonic() + BATCH_SECONDS_MAX
    told = None
    while batch.status not in ENDED and time.monotonic() < until:
        counts = batch.request_counts
        reason = (getattr(batch, current().extension, None) or {}).get("reason")
        now = (batch.status, counts.completed if counts else 0, reason)
        if now != told:
            told = now
            say(
                f"  {batch.status}, {now[1]} of {counts.total if counts else 0} lines"
                + (f". {reason}" if reason else "")
            )
        time.sleep(POLL_SECONDS)
        batch = client.batches.retrieve(batch.id)
    return batch


def _exchange(asked: dict[str, Any], answered: dict[str, Any]) -> str:
    if "choices" in answered:
        text = " ".join(answered["choices"][0]["message"]["content"].split())
        return f"{asked['messages'][-1]['content']} → {text[:SHOWN_CHARS]}"
    vector = answered["data"][0]["embedding"]
    return f"{asked['input']} → {len(vector)} numbers, {', '.join(f'{one:.4f}' for one in vector[:3])} …"
