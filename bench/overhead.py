"""How much a batch costs beside Airflow itself: `make bench-overhead`.

A batch of one line on a warm engine, from create to completed, split per task, beside the empty DAG of the same tasks
(bench/dags/empty_batch.py) in the same run. Starts the local stack with that DAG and stops it again.
"""

import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import openai

from gridline import ids
from gridline.catalog.cards import catalogue
from gridline.errors import GridlineError, Unavailable
from gridline.operate.demo.samples import CHAT_MODEL
from gridline.operate.demo.setting import Customer, open_demo_account, qualify_unless_listed
from gridline.operate.engines import ready_engine
from gridline.operate.secrets import AIRFLOW_ADMIN_PASSWORD, AIRFLOW_ADMIN_USER
from gridline.operate.stack import running
from gridline.settings import ROOT, Settings, settings

ROUNDS = 7
POLL_SECONDS = 0.05
RUN_SECONDS_MAX = 120
RATIO_AIM = 1.5
EMPTY_SECONDS_AIM = 2.5
TASKS = ("validate", "hold_credits", "wait_for_capacity", "infer_partition", "collate", "settle")
LOCAL_BUNDLE = "airflow.dag_processing.bundles.local.LocalDagBundle"
BUNDLES = [
    {"name": "dags-folder", "classpath": LOCAL_BUNDLE, "kwargs": {}},
    {"name": "bench", "classpath": LOCAL_BUNDLE, "kwargs": {"path": str(ROOT / "bench" / "dags")}},
]


@dataclass(frozen=True)
class Round:
    """One run: seconds from asking to done, and seconds that each task ran."""

    seconds: float
    tasks: dict[str, float]


@contextmanager
def airflow(config: Settings) -> Iterator[httpx.Client]:
    """Airflow's REST API as its administrator."""
    base = f"http://127.0.0.1:{config.airflow_port}"
    given = {"username": AIRFLOW_ADMIN_USER, "password": config.secret(AIRFLOW_ADMIN_PASSWORD)}
    token = httpx.post(f"{base}/auth/token", json=given, timeout=30).raise_for_status().json()["access_token"]
    with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        yield client


def task_seconds(client: httpx.Client, dag: str, run: str) -> dict[str, float]:
    """Seconds that each task of a run ran, mapped ones added up."""
    answer = client.get(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances").raise_for_status()
    found: dict[str, float] = {}
    for one in answer.json()["task_instances"]:
        if one["start_date"] and one["end_date"]:
            start, end = (datetime.fromisoformat(one[key]) for key in ("start_date", "end_date"))
            found[one["task_id"]] = found.get(one["task_id"], 0.0) + (end - start).total_seconds()
    return found


def wait_for_run(client: httpx.Client, dag: str, run: str) -> None:
    """Wait until Airflow calls the run done.

    Raises:
        Unavailable: it failed, or took longer than any such run should.
    """
    until = time.monotonic() + RUN_SECONDS_MAX
    while time.monotonic() < until:
        state = client.get(f"/api/v2/dags/{dag}/dagRuns/{run}").raise_for_status().json()["state"]
        if state == "success":
            return
        if state == "failed":
            break
        time.sleep(POLL_SECONDS)
    raise Unavailable(f"The run {run} of {dag} did not succeed.")


def empty_round(client: httpx.Client) -> Round:
    """One run of the empty DAG."""
    run = ids.new("batch").replace("batch_", "empty_")
    start = time.monotonic()
    asked = {"dag_run_id": run, "logical_date": None}
    client.post("/api/v2/dags/empty_batch/dagRuns", json=asked).raise_for_status()
    wait_for_run(client, "empty_batch", run)
    return Round(time.monotonic() - start, task_seconds(client, "empty_batch", run))


def batch_round(client: httpx.Client, sdk: openai.OpenAI, file_id: str) -> Round:
    """One batch of one line, as its customer sees it.

    Raises:
        Unavailable: it did not complete.
    """
    start = time.monotonic()
    batch: Any = sdk.batches.create(
        input_file_id=file_id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    while batch.status not in {"completed", "failed"} and time.monotonic() - start < RUN_SECONDS_MAX:
        time.sleep(POLL_SECONDS)
        batch = sdk.batches.retrieve(batch.id)
    seconds = time.monotonic() - start
    if batch.status != "completed":
        raise Unavailable(f"{batch.id} is {batch.status}: {batch.errors}")
    wait_for_run(client, "batch", batch.id)
    return Round(seconds, task_seconds(client, "batch", batch.id))


def upload(sdk: openai.OpenAI) -> str:
    """The one line: one token, so that the engine's own time hardly counts."""
    body = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 1}
    line = {"custom_id": "one", "method": "POST", "url": "/v1/chat/completions", "body": body}
    return sdk.files.create(file=("one.jsonl", json.dumps(line).encode()), purpose="batch").id


def wait_for_dag(client: httpx.Client) -> None:
    """Wait until Airflow has parsed the empty DAG.

    Raises:
        Unavailable: it never did.
    """
    until = time.monotonic() + RUN_SECONDS_MAX
    while time.monotonic() < until:
        if client.get("/api/v2/dags/empty_batch").is_success:
            return
        time.sleep(1)
    raise Unavailable("Airflow does not know the DAG empty_batch.")


def measure(config: Settings, who: Customer) -> tuple[list[Round], list[Round]]:
    """Batches and empty runs in turn, after one of each that does not count."""
    sdk = openai.OpenAI(base_url=f"{config.public_api_url}/openai/v1", api_key=who.token, timeout=60)
    batches, empties = [], []
    with airflow(config) as client:
        wait_for_dag(client)
        file_id = upload(sdk)
        for number in range(ROUNDS + 1):
            found = batch_round(client, sdk, file_id), empty_round(client)
            print(f"  {number or 'warm-up'}: batch {found[0].seconds:.2f} s, empty {found[1].seconds:.2f} s")
            if number:
                batches.append(found[0])
                empties.append(found[1])
    return batches, empties


def median_of(rounds: list[Round], task: str) -> float:
    """A task's median seconds."""
    return statistics.median(one.tasks.get(task, 0.0) for one in rounds)


def report(batches: list[Round], empties: list[Round]) -> None:
    """The table, the ratio, and what was aimed at."""
    print(f"\n{'median of ' + str(ROUNDS):<20}{'batch':>9}{'empty':>9}")
    for task in TASKS:
        print(f"{task:<20}{median_of(batches, task):>8.2f}s{median_of(empties, task):>8.2f}s")
    ours, theirs = (statistics.median(one.seconds for one in rounds) for rounds in (batches, empties))
    between = [
        statistics.median(one.seconds - sum(one.tasks.values()) for one in rounds)
        for rounds in (batches, empties)
    ]
    print(f"{'between the tasks':<20}{between[0]:>8.2f}s{between[1]:>8.2f}s")
    print(f"{'create to completed':<20}{ours:>8.2f}s{theirs:>8.2f}s")
    print(
        f"\nratio {ours / theirs:.2f} (aim: at most {RATIO_AIM}); empty DAG {theirs:.2f} s (aim: at most {EMPTY_SECONDS_AIM})"
    )


def main() -> int:
    """Start the stack with the empty DAG, measure, print, stop."""
    config = settings()
    if running.running_pid(config) is not None:
        sys.stderr.write("A stack runs here without the empty DAG. Stop it first: make down\n")
        return 1
    try:
        added = {"AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(BUNDLES)}
        running.start(config, tied=True, added=added)
        running.wait_until_ready(config, print)
        qualify_unless_listed(config, CHAT_MODEL, print)
        ready_engine(config, catalogue()[CHAT_MODEL])
        report(*measure(config, open_demo_account()))
    except GridlineError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    finally:
        running.stop(config)
    return 0


if __name__ == "__main__":
    sys.exit(main())
