"""The API in other dialects than the default one: what a profile's file says is what customers meet."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app import create_app
from gridline.batches import holding, validating
from gridline.catalog import cards
from gridline.client import Client
from gridline.profiles.profile import Profile
from tests.api.conftest import LINES, MODEL, Customer, live
from tests.dialects import speak, speak_made_up

RESPONSES = "/v1/responses"


@dataclass
class Platform:
    """A customer's client of a platform that speaks a dialect."""

    base: str
    http: httpx.Client
    token: str

    def upload(self, data: bytes) -> httpx.Response:
        """The answer to an upload."""
        return self.http.post(
            f"{self.base}/files", data={"purpose": "batch"}, files={"file": ("r.jsonl", data)}
        )

    def file(self, data: bytes = LINES) -> str:
        """The id of an upload."""
        return str(self.upload(data).json()["id"])

    def create(self, file_id: str, *, key: str | None = None, **over: object) -> httpx.Response:
        """The answer to a create."""
        wanted = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            **over,
        }
        headers = {"Idempotency-Key": key} if key else {}
        return self.http.post(f"{self.base}/batches", json=wanted, headers=headers)

    def read(self, path: str) -> Any:
        """What a path below the base path answers."""
        return self.http.get(f"{self.base}{path}").json()


def platform(profile: Profile, token: str) -> Iterator[Platform]:
    """One on a free port."""
    headers = {"Authorization": f"Bearer {token}"}
    with live(create_app(profile)) as url, httpx.Client(base_url=url, headers=headers, verify=False) as http:
        yield Platform(profile.base_paths[0], http, token)


@pytest.fixture
def gridport(ann: Customer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    """A platform that speaks the second dialect."""
    yield from platform(speak(monkeypatch, "gridport"), ann.token)


@pytest.fixture
def made_up(ann: Customer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    """A platform that speaks a dialect whose file was written a moment ago."""
    yield from platform(speak_made_up(monkeypatch, tmp_path), ann.token)


def lines(count: int) -> bytes:
    """A file of responses lines."""
    body = {"model": MODEL, "input": "Say ok", "max_output_tokens": 8}
    rows = [
        {"custom_id": f"c{number}", "method": "POST", "url": RESPONSES, "body": body}
        for number in range(count)
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_gridports_batch_carries_its_tier_and_cost(gridport: Platform) -> None:
    """The extension says the tier, and the cost once there is one; gridline's object is not there, the count of cancelled is."""
    batch = gridport.create(gridport.file()).json()
    assert batch["tf"] == {"pricing_tier": "batch", "cost": None}
    assert "gridline" not in batch
    assert batch["request_counts"] == {"total": 0, "completed": 0, "failed": 0, "cancelled": 0}
    assert gridport.read(f"/batches/{batch['id']}") == batch


def test_gridport_has_one_path_and_one_window(gridport: Platform) -> None:
    """/v1 is its only base path, 24h its only window."""
    assert gridport.http.get("/openai/v1/batches").status_code == 404
    refused = gridport.create(gridport.file(), completion_window="72h")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "completion_window")


@pytest.mark.parametrize("endpoint", ["/v1/chat/completions", "/v1/embeddings", RESPONSES, "/v1/messages"])
def test_gridport_takes_four_endpoints(gridport: Platform, endpoint: str) -> None:
    """Batches of responses and messages are created like others."""
    assert gridport.create(gridport.file(), endpoint=endpoint).status_code == 200


@pytest.mark.parametrize("endpoint", [RESPONSES, "/v1/messages"])
def test_the_default_dialect_refuses_two_of_them(ann: Customer, endpoint: str) -> None:
    """Responses and messages are gridport's."""
    wanted = {"input_file_id": ann.file(), "endpoint": endpoint, "completion_window": "24h"}
    refused = ann.http.post("/v1/batches", json=wanted)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_value")


def test_gridport_takes_ten_thousand_lines(gridport: Platform) -> None:
    """The last line that is allowed is taken, the next one refused at upload, with the limit."""
    assert gridport.upload(lines(10_000)).status_code == 200
    refused = gridport.upload(lines(10_001))
    assert refused.status_code == 413
    assert "10000" in refused.json()["error"]["message"].replace(",", "")


def test_gridport_replays_a_create_by_its_key(gridport: Platform) -> None:
    """The same key and body get the first batch, the same key with another body is a conflict."""
    file_id = gridport.file()
    first = gridport.create(file_id, key="once").json()
    assert gridport.create(file_id, key="once").json()["id"] == first["id"]
    assert gridport.create(file_id, key="once", endpoint=RESPONSES).status_code == 409


@pytest.mark.usefixtures("prepared")
def test_gridport_charges_half(gridport: Platform) -> None:
    """Models are listed at half the rate, and a batch's hold is made at it."""
    shown = gridport.read(f"/models/{MODEL}")["tf"]
    assert shown["endpoints"] == ["/v1/chat/completions", RESPONSES, "/v1/messages"]
    standard = cards.read_catalogue(cards.CATALOGUE.read_text(encoding="utf-8"))[MODEL]
    assert shown["prices"]["input"]["nanos_per_token"] * 2 == standard.input_price_nanos
    batch_id = gridport.create(gridport.file(lines(2)), endpoint=RESPONSES).json()["id"]
    validating.validate(batch_id)
    assert holding.hold_credits(batch_id) == "held"
    receipt = gridport.http.get(f"/gridline/v1/batches/{batch_id}/receipt").json()
    # One token a byte of "Say ok", and what may be written.
    nanos = 2 * (6 * standard.input_price_nanos + 8 * standard.output_price_nanos) // 2
    assert receipt["hold"] == f"0.{nanos:09d}"


@pytest.mark.usefixtures("prepared")
def test_in_gridport_a_stored_response_fails_alone(gridport: Platform) -> None:
    """The batch of a line with store: true is not failed at validation."""
    asking = json.loads(lines(1)) | {"custom_id": "asks"}
    asking["body"]["store"] = True
    data = lines(1) + json.dumps(asking).encode() + b"\n"
    batch_id = gridport.create(gridport.file(data), endpoint=RESPONSES).json()["id"]
    assert validating.validate(batch_id) == [0]
    batch = gridport.read(f"/batches/{batch_id}")
    assert (batch["errors"], batch["request_counts"]["total"], batch["request_counts"]["failed"]) == (
        None,
        2,
        1,
    )


def test_a_new_dialect_is_a_new_file(made_up: Platform) -> None:
    """Paths, window, endpoints, caps and the extension's shape of a dialect are what its file says."""
    stored = made_up.upload(lines(3))
    assert stored.status_code == 200
    assert made_up.upload(lines(4)).status_code == 413
    assert made_up.upload(lines(2) + b" " * 2_000).status_code == 413
    assert made_up.create(stored.json()["id"]).json()["error"]["param"] == "endpoint"
    wanted = {"endpoint": RESPONSES, "completion_window": "72h"}
    batch = made_up.create(stored.json()["id"], **wanted).json()
    assert batch["acme"] == {"made_by": "Acme", "hold": None, "cost": None}
    assert made_up.read(f"/batches/{batch['id']}") == batch
    assert made_up.http.get(f"/v1/batches/{batch['id']}").status_code == 404


@pytest.mark.usefixtures("qualified")
def test_a_new_dialect_has_its_own_price(made_up: Platform) -> None:
    """Its share of the standard rate is the price; models that serve none of its endpoints are not listed."""
    listed = made_up.read("/models")["data"]
    assert [one["id"] for one in listed] == [MODEL]
    standard = cards.read_catalogue(cards.CATALOGUE.read_text(encoding="utf-8"))[MODEL]
    price = listed[0]["acme"]["prices"]["output"]["nanos_per_token"]
    assert price * 2 == standard.output_price_nanos * 3
    assert listed[0]["acme"]["endpoints"] == [RESPONSES]


def test_a_platform_says_what_it_takes(made_up: Platform) -> None:
    """Anybody may ask where OpenAI's resources are, and what batches may have."""
    answer = httpx.get(f"{made_up.http.base_url}/gridline/v1/platform", verify=False)
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert answer.json() == {
        "object": "gridline.platform",
        "dialect": "made_up",
        "base_paths": ["/made/up/v2"],
        "endpoints": [RESPONSES],
        "completion_windows": ["72h"],
        "file_bytes_max": 2_000,
        "file_requests_max": 3,
        "extension": "acme",
        "sign_in": {"password": True, "identity_provider": False},
    }


def test_our_own_client_speaks_every_dialect(made_up: Platform) -> None:
    """Given the bare server it finds the paths, and knows why a batch waits also where the dialect does not say it."""
    stored = made_up.file(lines(1))
    with Client(str(made_up.http.base_url), made_up.token) as client:
        made = client.create_batch(stored, endpoint=RESPONSES, window=client.platform.windows[0])
        assert (made.hold_nanos, made.wait) == (None, None)
        (listed,) = client.batches().data
        assert listed == client.batch(made.id)
        assert listed.wait is not None
        assert listed.wait.reason_code == "starting"
        assert client.base_url.endswith("/made/up/v2")


def test_a_create_whose_input_expires_too_early_is_refused(gridport: Platform) -> None:
    """Under the account's retention an input that is asked to go after an hour cannot serve a day's window."""
    answer = gridport.http.post(
        f"{gridport.base}/files",
        data={"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"},
        files={"file": ("r.jsonl", LINES)},
    )
    file = answer.json()
    assert file["expires_at"] - file["created_at"] == 3_600
    refused = gridport.create(file["id"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "input_expires_too_early")
    assert gridport.create(gridport.file()).status_code == 200
