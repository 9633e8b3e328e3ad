"""What is done so far, over HTTP."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from gridline import limits
from gridline.batches import finishing
from gridline.batches.tables import Batch, Partition
from gridline.client import Client, ClientError
from gridline.clock import FrozenClock
from gridline.db.work import unit_of_work
from gridline.ids import new
from gridline.storage import layout
from gridline.storage.objects import Store
from tests.api.conftest import Customer
from tests.gridline.batches.bench import Bench

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bench(ann: Customer, store: Store) -> Bench:
    """Makes Ann's batches at any stage."""
    return Bench(FrozenClock(datetime(2026, 1, 5, tzinfo=UTC)), store, ann.account_id)


@dataclass
class Running:
    """A batch of five lines whose one attempt closes segments."""

    bench: Bench
    batch: Batch
    lease: str
    closed: int = 0

    @property
    def id(self) -> str:
        """The batch's id."""
        return self.batch.id

    def close(self, *lines: int) -> None:
        """These lines are done."""
        self.bench.segment(self.batch, 0, list(lines), lease=self.lease, place=self.closed)
        self.closed += 1

    def finish(self) -> None:
        """All is done, and the batch ends."""
        with unit_of_work() as work:
            work.session.get_one(Partition, (self.id, 0)).state = "done"
        finishing.finish(self.id, run_over=True)


@pytest.fixture
def running(bench: Bench) -> Running:
    """A batch of five lines that runs."""
    batch, lease = bench.held(lines=(5,)), new("lease")
    bench.claim(batch, 0, lease=lease)
    return Running(bench, batch, lease)


def results(customer: Customer, batch: Batch | Running, **query: object) -> httpx.Response:
    """One call."""
    given = {name: str(value) for name, value in query.items()}
    return customer.http.get(f"/gridline/v1/batches/{batch.id}/results", params=given)


def ids(answer: httpx.Response) -> list[str]:
    """The custom_ids of an answer."""
    assert answer.status_code == 200, answer.text
    return [json.loads(line)["custom_id"] for line in answer.content.splitlines()]


def test_a_customer_follows_a_batch_to_its_end(ann: Customer, running: Running) -> None:
    """Asking again and again with the cursor yields each line once, and the header says when it was all."""
    first = results(ann, running)
    assert (first.content, first.headers["gridline-incomplete"]) == (b"", "true")
    running.close(3, 1)
    second = results(ann, running, after=first.headers["gridline-next-cursor"])
    assert ids(second) == ["c3", "c1"]
    assert second.headers["content-type"] == "application/jsonl"
    assert second.headers["cache-control"] == "private, no-store"
    assert int(second.headers["content-length"]) == len(second.content)
    running.close(0, 2, 4)
    running.finish()
    third = results(ann, running, after=second.headers["gridline-next-cursor"])
    assert (ids(third), third.headers["gridline-incomplete"]) == (["c0", "c2", "c4"], "false")
    whole = results(ann, running)
    output = ann.sdk.files.content(str(ann.sdk.batches.retrieve(running.id).output_file_id)).content
    assert sorted(whole.content.splitlines()) == sorted(output.splitlines())


def test_pages_of_an_ended_batch_say_when_more_is_left(ann: Customer, running: Running) -> None:
    """``limit`` is about lines, a segment stays whole, and only the last page is complete."""
    for lines in ((0, 1), (2, 3), (4,)):
        running.close(*lines)
    running.finish()
    after, pages = "", []
    for _ in range(3):
        page = results(ann, running, after=after, limit=1)
        after = page.headers["gridline-next-cursor"]
        pages.append((ids(page), page.headers["gridline-incomplete"]))
    assert pages == [(["c0", "c1"], "true"), (["c2", "c3"], "true"), (["c4"], "false")]


@pytest.mark.parametrize("limit", ["0", "10001", "x", "-1", "1.5"])
def test_a_wrong_limit_is_refused_by_name(ann: Customer, running: Running, limit: str) -> None:
    """1 to 10,000 lines."""
    answer = results(ann, running, limit=limit)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "limit")
    assert results(ann, running, limit=10_000).status_code == 200


def test_a_wrong_cursor_is_refused_by_name(ann: Customer, bench: Bench, running: Running) -> None:
    """A cursor of another batch, one cut short, and other text are a 400; none is found by trying again."""
    other = results(ann, bench.held()).headers["gridline-next-cursor"]
    own = results(ann, running).headers["gridline-next-cursor"]
    for cursor in (other, own[:-1], "x", "batch_1", "\u2028"):
        answer = results(ann, running, after=cursor)
        assert answer.status_code == 400, cursor
        assert answer.json()["error"]["param"] == "after"
        assert answer.headers["x-should-retry"] == "false"


def test_a_stranger_gets_the_same_404_whatever_it_sends(
    ann: Customer, bob: Customer, running: Running
) -> None:
    """A foreign batch is a missing one, with a cursor of it, a wrong cursor, or none."""
    own = results(ann, running).headers["gridline-next-cursor"]
    for cursor in ("", own, "x"):
        answer = results(bob, running, after=cursor)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
        assert running.id in answer.json()["error"]["message"]
    missing = bob.http.get(f"/gridline/v1/batches/batch_{'0' * 24}/results")
    assert (
        missing.json()["error"]["message"].replace("batch_" + "0" * 24, running.id)
        == answer.json()["error"]["message"]
    )


def test_results_that_are_gone_are_a_404_of_their_own(ann: Customer, running: Running, store: Store) -> None:
    """``results_gone`` names the file to read instead."""
    running.close(0, 1, 2, 3, 4)
    running.finish()
    store.delete_prefix(layout.batch_prefix(running.id))
    answer = results(ann, running)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "results_gone")
    assert str(ann.sdk.batches.retrieve(running.id).output_file_id) in answer.json()["error"]["message"]


def test_reading_needs_no_right_to_write(ann: Customer, running: Running, address: str) -> None:
    """The scope is read, and HEAD says what GET would."""
    answer = ann.http.head(f"/gridline/v1/batches/{running.id}/results")
    assert (answer.status_code, answer.headers["gridline-incomplete"]) == (200, "true")
    assert httpx.get(f"{address}/gridline/v1/batches/{running.id}/results", verify=False).status_code == 401


def test_our_client_reads_page_by_page(ann: Customer, running: Running, address: str) -> None:
    """The typed client gives lines as objects, the cursor to go on with, and whether more may come."""
    running.close(3, 1)
    with Client(address, ann.token) as client:
        page = client.results(running.id)
        assert [line["custom_id"] for line in page.lines] == ["c3", "c1"]
        assert page.incomplete
        again = client.results(running.id, after=page.next_cursor, limit=1)
        assert (again.lines, again.next_cursor, again.incomplete) == ((), page.next_cursor, True)
        with pytest.raises(ClientError) as caught:
            client.results(running.id, after="x")
        assert caught.value.status == 400


def test_the_docs_snippet_follows_a_batch(ann: Customer, running: Running, address: str) -> None:
    """The Python of docs/api.md, as it stands there, yields every line once and ends with the batch."""
    page = ROOT.joinpath("docs", "api.md").read_text()
    (snippet,) = re.findall(r"```python\n(import json, time\n.*?)```", page, re.DOTALL)
    known: dict[str, Any] = {}
    exec(snippet, known)
    naps = iter([lambda: running.close(4, 2), lambda: running.close(0, 1, 3), running.finish])
    known["time"] = SimpleNamespace(sleep=lambda seconds: next(naps)())
    found = [line["custom_id"] for line in known["follow"](running.id, ann.token, address)]
    assert found == ["c4", "c2", "c0", "c1", "c3"]


def test_pages_count_as_downloads(ann: Customer, running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read here counts towards the bytes that an account may download in an hour; a HEAD is free."""
    monkeypatch.setattr(limits, "DOWNLOADED_BYTES_PER_HOUR_MAX", 1)
    assert results(ann, running).status_code == 200
    running.close(0)
    assert ann.http.head(f"/gridline/v1/batches/{running.id}/results").status_code == 200
    answer = results(ann, running)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")


def test_a_large_page_is_cut_and_sent_whole(
    ann: Customer, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page ends by its bytes too, and what is announced arrives."""
    monkeypatch.setattr(limits, "RESULTS_PAGE_BYTES_MAX", 300)
    for line in range(5):
        running.close(line)
    sizes = [len(ids(page)) for page in pages(ann, running)]
    assert sum(sizes) == 5
    assert len(sizes) > 1


def pages(customer: Customer, batch: Running) -> Iterator[httpx.Response]:
    """Pages until one is empty."""
    after = ""
    while (page := results(customer, batch, after=after)).content:
        after = page.headers["gridline-next-cursor"]
        yield page
