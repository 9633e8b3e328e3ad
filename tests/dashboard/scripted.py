"""The scripted objects of the fake API: one batch in every status and wait, hostile texts among them."""

import json
from dataclasses import dataclass, field
from typing import Any

NOW = 1_767_614_400
CHAT = "smollm2-135m-instruct"
ALICE, BOB, NEWCOMER = "gl-token-of-alice", "gl-token-of-bob", "gl-token-of-a-newcomer"
HOSTILE = '=cmd()|"<script>alert(1)</script>" ![x](http://evil.example/x.png) [a](javascript:b)'
STAMPS = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")

WEBHOOK = {
    "id": "whk_one", "object": "gridline.webhook", "created_at": NOW, "url": "https://hooks.example/gridline",
    "events": [], "disabled": False, "disabled_reason": None, "failing_since": NOW,
}  # fmt: skip
DELIVERY = {
    "id": "evt_one", "created_at": NOW, "type": "batch.completed", "data": {"id": "batch_fDone"}, "state": "pending",
    "attempts": 2, "last_status": 503, "last_error": None,
}  # fmt: skip

PLATFORM = {
    "base_paths": ["/openai/v1", "/v1"],
    "endpoints": ["/v1/chat/completions", "/v1/embeddings"],
    "completion_windows": ["24h", "72h"],
    "file_bytes_max": 200_000_000,
    "file_requests_max": 50_000,
}

PRICING = {
    "credit": {"usd": "1.00", "nanos": 10**9},
    "packs": [{"credits": "10.000000000", "usd": "10.00"}],
    "models": [
        {
            "id": CHAT,
            "gridline": {
                "kind": "chat", "context_tokens": 8_192, "licence": "Apache-2.0",
                "prices": {way: {"credits_per_million_tokens": "0.010000000"} for way in ("input", "output")},
            },
        }
    ],
    "limits": [{"name": "open_batches", "limit": 2, "unit": "batches"}],
}  # fmt: skip

# What reasons.py says, shortened.
WAITS = {
    "gridline_capacity": (
        "All GPUs that serve this model are busy with other batches.",
        "Wait: more credit or a second copy of the batch does not help.",
    ),
    "customer_credit": (
        "Your available credit does not cover the most that this batch can cost.",
        "Look at your balance before adding more. Do not resubmit the batch.",
    ),
    "validating_file": (
        "Every line of the input file is being checked and its tokens counted.",
        "Nothing to do: large files take a few minutes.",
    ),
    "account_capacity": (
        "Your account's other batches use all the GPU capacity that your account may use at once.",
        "Wait for another of your batches to end. The accepted batch goes on by itself; do not resubmit it.",
    ),
}


@dataclass
class Account:
    """What the fake API knows of one account."""

    shown: dict[str, Any]
    now: int
    batches: dict[str, Any] = field(default_factory=dict)
    events: dict[str, Any] = field(default_factory=dict)
    receipts: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    tokens: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, status: str, *, ago: int, **given: Any) -> dict[str, Any]:
        """One batch with its files, events and receipt; returns the batch object."""
        batch_id = f"batch_{name}".ljust(30, "0")
        batch = _batch(batch_id, status, self.now - ago, given)
        self.batches[batch_id] = batch
        self._file(batch["input_file_id"], given.get("filename", f"{name}.jsonl"), 48_120)
        for kind in ("output", "error"):
            if batch[f"{kind}_file_id"]:
                self._file(batch[f"{kind}_file_id"], f"{batch_id}_{kind}.jsonl", 912_400)
                self.contents[batch[f"{kind}_file_id"]] = (
                    _failed_lines()
                    if kind == "error"
                    else f'{{"of":"{batch_id}","kind":"{kind}"}}\n'.encode() * 40
                )
        self.events[batch_id] = {"object": "list", "data": _events(batch), "has_more": False}
        if batch["gridline"]["hold"]:
            self.receipts[batch_id] = _receipt(batch)
        return batch

    def _file(self, file_id: str, filename: str, size: int) -> None:
        self.files[file_id] = {
            "id": file_id, "object": "file", "filename": filename, "bytes": size, "purpose": "batch",
            "status": "processed", "created_at": self.now - 90_000, "expires_at": self.now + 2_500_000,
        }  # fmt: skip


def _failed_lines() -> bytes:
    """An error file: four prompts that were too long, with hostile words, and three lines that never ran."""
    refused = error(f"8,300 tokens are over the context of 8,192. {HOSTILE}", "context_length_exceeded")
    lines: list[dict[str, Any]] = [
        {"custom_id": f"{HOSTILE} {number}", "response": {"status_code": 400, "body": refused}, "error": None}
        for number in range(4)
    ]
    never = {"code": "batch_expired", "message": "The batch expired before this line ran."}
    lines += [{"custom_id": f"late-{number}", "response": None, "error": never} for number in range(3)]
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def error(message: str, code: str) -> dict[str, Any]:
    """OpenAI's error object."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def _batch(batch_id: str, status: str, created: int, given: dict[str, Any]) -> dict[str, Any]:
    total, completed, failed = given.get("counts", (0, 0, 0))
    wait = given.get("wait")
    reason, next_step = WAITS[wait] if wait else (None, None)
    stamps: dict[str, Any] = {f"{name}_at": None for name in STAMPS}
    if status not in ("validating", "failed"):
        stamps["in_progress_at"] = created + 40
    if status == "completed":
        stamps["finalizing_at"] = created + 300
    if status != "validating":
        stamps[f"{status}_at"] = stamps.get(f"{status}_at") or created + 310
    if status == "cancelled":
        stamps["cancelling_at"] = created + 300
    return {
        "id": batch_id,
        "object": "batch",
        "endpoint": given.get("endpoint", "/v1/chat/completions"),
        "model": given.get("model", CHAT),
        "errors": given.get("errors"),
        "input_file_id": f"file-in-{batch_id[6:]}",
        "completion_window": given.get("window", "24h"),
        "status": status,
        "output_file_id": f"file-out-{batch_id[6:]}" if completed and "cost" in given else None,
        "error_file_id": f"file-err-{batch_id[6:]}" if failed and "cost" in given else None,
        "created_at": created,
        "expires_at": created + 86_400,
        **stamps,
        "request_counts": {
            "total": total, "completed": completed, "failed": failed, "cancelled": given.get("cancelled", 0),
        },
        "usage": None,
        "metadata": given.get("metadata"),
        "gridline": {
            "reason": reason,
            "reason_code": wait,
            "since": created + 30 if wait else None,
            "next_step": next_step,
            "hold": given.get("hold"),
            "cost": given.get("cost"),
            "error_code": given.get("error_code"),
        },
    }  # fmt: skip


def _events(batch: dict[str, Any]) -> list[dict[str, Any]]:
    start = batch["created_at"]
    data = [{"at": start, "kind": "created", "actor": "tok_4f2kQ9", "details": {"input_file_id": "x"}}]
    if batch["model"]:
        lines = {"lines": batch["request_counts"]["total"], "refused": 0, "partitions": 1}
        data.append({"at": start + 20, "kind": "validated", "actor": "keeper", "details": lines})
    if batch["gridline"]["hold"]:
        details = {"amount": batch["gridline"]["hold"]}
        data.append({"at": start + 22, "kind": "held", "actor": "keeper", "details": details})
        details = {"reason_code": "gridline_capacity"}
        data.append({"at": start + 30, "kind": "waiting", "actor": "keeper", "details": details})
        if not batch["gridline"]["reason_code"]:
            data.append({"at": start + 38, "kind": "went_on", "actor": "keeper", "details": details})
    moves = sorted((batch[f"{name}_at"], name) for name in STAMPS if batch[f"{name}_at"])
    data += [{"at": at, "kind": name, "actor": "keeper", "details": {}} for at, name in moves]
    if batch["gridline"]["reason_code"] and not batch["gridline"]["hold"]:
        details = {"reason_code": batch["gridline"]["reason_code"]}
        data.append({"at": start + 30, "kind": "waiting", "actor": "keeper", "details": details})
    return [one | {"object": "batch.event", "sequence": number} for number, one in enumerate(data)]


def _receipt(batch: dict[str, Any]) -> dict[str, Any]:
    hold, cost = batch["gridline"]["hold"], batch["gridline"]["cost"]
    settled = cost is not None
    nanos = int(hold.replace(".", "")) - int((cost or "0").replace(".", ""))
    return {
        "object": "gridline.receipt",
        "batch_id": batch["id"],
        "state": "settled" if settled else "held",
        "model": batch["model"],
        "rates": {"input_token": "0.000000020", "output_token": "0.000000080"},
        "hold": hold,
        "charged": cost,
        "returned": f"{nanos // 10**9}.{nanos % 10**9:09d}" if settled else None,
        "lines": batch["request_counts"]["completed"] if settled else None,
        "input_tokens": 12_840 if settled else None,
        "output_tokens": 4_210 if settled else None,
        "held_at": batch["created_at"] + 22,
        "settled_at": batch["created_at"] + 310 if settled else None,
    }


def _account(name: str, available: str, held: str, open_batches: int, now: int) -> Account:
    limits = {
        "open_batches": {"limit": 8, "current": open_batches},
        "files": {"limit": 500, "current": 12},
        "stored_bytes": {"limit": 20_000_000_000, "current": 48_120_300},
        "leases": {"limit": 4},
        "daily_credits": {"limit": "100.000000000"},
    }
    balance = {"available": available, "held": held}
    shown = {"object": "account", "id": f"acct_{name}", "name": name, "limits": limits, "balance": balance}
    return Account(shown, now)


def _open(alice: Account) -> None:
    alice.add(
        "aNew",
        "validating",
        ago=25,
        wait="validating_file",
        model=None,
        metadata={"description": "Fresh upload"},
    )
    alice.add(
        "bCredit",
        "validating",
        ago=5_400,
        wait="customer_credit",
        window="72h",
        counts=(5_000, 0, 0),
        metadata={"description": "Night run of the whole catalogue"},
    )
    alice.add(
        "cBusy", "in_progress", ago=260, wait="gridline_capacity", hold="0.003512000", counts=(64, 0, 0)
    )
    alice.add(
        "dHalf",
        "in_progress",
        ago=900,
        hold="0.015000000",
        counts=(1_319, 802, 6),
        metadata={"description": "GSM8K, test split", "team": "research"},
    )
    alice.add(
        "eFinal",
        "finalizing",
        ago=1_200,
        hold="0.001000000",
        counts=(12, 12, 0),
        endpoint="/v1/embeddings",
        model="all-minilm-l6-v2",
    )


def _delivered(alice: Account) -> None:
    alice.add(
        "fDone",
        "completed",
        ago=4_000,
        hold="0.001500000",
        cost="0.000593600",
        counts=(200, 200, 0),
        metadata={"description": "Support tickets, week 1"},
    )
    alice.add("gMixed", "completed", ago=90_000, hold="0.001500000", cost="0.000593600", counts=(200, 193, 7))
    alice.add(
        "jLate", "expired", ago=260_000, hold="0.090000000", cost="0.041200000", counts=(2_000, 1_412, 588)
    )
    alice.add(
        "kStop",
        "cancelled",
        ago=300_000,
        hold="0.090000000",
        cost="0.004120000",
        counts=(2_000, 142, 3),
        cancelled=1_855,
    )
    alice.add("lGoing", "cancelling", ago=60, hold="0.090000000", counts=(2_000, 142, 3))


def _failed(alice: Account) -> None:
    problems = [
        {"code": "invalid_json_line", "message": "This line is not parseable as valid JSON.", "param": None, "line": 2},
        {"code": "duplicate_custom_id", "message": f"The custom_id '{HOSTILE}' for this request is a duplicate of "
         "another request.", "param": "custom_id", "line": 17},
        {"code": "model_not_found", "message": "=1+1", "param": "@body.model", "line": 18},
    ]  # fmt: skip
    alice.add(
        "hBad",
        "failed",
        ago=100_000,
        counts=(0, 0, 0),
        model=None,
        filename=f"{HOSTILE}.jsonl",
        errors={"object": "list", "data": problems},
    )
    no_gpu = {"code": "capacity_unavailable", "message": "No GPU capacity became free within the window's start bound. "
              "Nothing ran and nothing was charged.", "param": None, "line": None}  # fmt: skip
    alice.add(
        "iNoGpu",
        "failed",
        ago=180_000,
        hold="0.002000000",
        cost="0.000000000",
        error_code="capacity_unavailable",
        errors={"object": "list", "data": [no_gpu]},
        counts=(90, 0, 0),
        metadata={"description": HOSTILE},
    )


def accounts(now: int = NOW) -> dict[str, Account]:
    """Alice with a batch of every kind, Bob with one, a newcomer with none: by token."""
    alice = _account("Alice Analytics", "87.412960400", "0.018512000", 6, now)
    _open(alice)
    _delivered(alice)
    _failed(alice)
    bob = _account("Bob's Bots", "1.00", "0.00", 0, now)
    bob.add(
        "zBob",
        "completed",
        ago=50,
        hold="0.001500000",
        cost="0.000593600",
        counts=(3, 3, 0),
        metadata={"description": "Bob's secret batch"},
    )
    return {ALICE: alice, BOB: bob, NEWCOMER: _account("New Co", "5.00", "0.00", 0, now)}  # fmt: skip


def newcomer(name: str) -> Account:
    """An account without anything."""
    return _account(name, "0.00", "0.00", 0, NOW)


def usage(account: Account, first: str) -> list[dict[str, Any]]:
    """What the account used in the days from ``first``: two models on one day, one on the next; a newcomer nothing."""
    if not account.receipts:
        return []
    day = {
        "object": "gridline.usage",
        "batches": 1,
        "lines": 200,
        "input_tokens": 12_840,
        "output_tokens": 4_210,
    }
    return [
        day | {"day": first, "model": CHAT, "amount": "0.000593600"},
        day | {"day": first, "model": "all-minilm-l6-v2", "output_tokens": 0, "amount": "0.000128400"},
        day | {"day": f"{first[:8]}02", "model": CHAT, "amount": "0.000593600"},
    ]


def statement(account: Account, first: str, last: str) -> dict[str, Any]:
    """The account's entries of these days: credit given, a batch held and charged, a hostile reason."""
    entries = [
        ("grant", None, "100.000000000", "0.000000000", f"Welcome, {account.shown['name']}"),
        ("hold", "batch_fDone".ljust(30, "0"), "-0.001500000", "0.001500000", "The most the batch can cost"),
        ("settle", "batch_fDone".ljust(30, "0"), "0.000906400", "-0.001500000", "Delivered lines charged"),
        ("adjust", None, "-1.000000000", "0.000000000", HOSTILE),
    ]
    data = [
        {
            "id": f"txn_{number}", "object": "gridline.entry", "created_at": NOW + number, "kind": kind,
            "amount": {"hold": "0.000000000", "settle": "-0.000593600"}.get(kind, available),
            "available_change": available, "held_change": held, "batch_id": batch, "actor": "operator", "why": why,
        }
        for number, (kind, batch, available, held, why) in enumerate(entries if account.receipts else [])
    ]  # fmt: skip
    closing = {"available": "98.999406400" if data else "0.000000000", "held": "0.000000000"}
    return {
        "object": "gridline.statement", "from": first, "to": last, "data": data, "closing": closing,
        "opening": {"available": "0.000000000", "held": "0.000000000"},
    }  # fmt: skip
