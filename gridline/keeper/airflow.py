"""The few calls of Airflow's REST API that the keeper makes. Knows runs by batch id, and no database."""

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import httpx

from gridline.keeper.errors import AirflowAway, RunNotFound
from gridline.settings import Settings

DAG = "batch"
TIMEOUT_SECONDS = 10.0
DATES_TRIED_MAX = 1_000
"""A run's logical date is its batch's creation; of batches created in the same microsecond each takes the next."""
PAGE = 100

_RUNS = f"/api/v2/dags/{DAG}/dagRuns"
_ENDED = ("success", "failed")


@dataclass(frozen=True)
class Run:
    """A run as Airflow tells it. Its state is never the batch's."""

    state: Literal["queued", "running", "success", "failed"]
    ended_at: str | None

    @property
    def ended(self) -> bool:
        """Whether nothing of it will run any more."""
        return self.state in _ENDED


class Airflow:
    """A client of one Airflow, as its service user: starts, reads, clears and annotates runs of our DAG.

    Every method raises AirflowAway when asking later may help.
    """

    def __init__(
        self, base_url: str, user: str, password: str, *, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._client = httpx.Client(base_url=base_url, timeout=TIMEOUT_SECONDS, transport=transport)
        self._credentials = {"username": user, "password": password}
        self._token: str | None = None
        self._lock = threading.Lock()

    @classmethod
    def of(cls, config: Settings) -> "Airflow":
        """The client that the settings describe."""
        return cls(config.reachable_airflow_url, config.airflow_user, config.secret("airflow_password"))

    def start_run(self, batch_id: str, created_at: datetime, *, note: str) -> None:
        """Start the batch's run. Started before counts as started, however often this is called."""
        for step in range(DATES_TRIED_MAX):
            body = {
                "dag_run_id": batch_id,
                "logical_date": (created_at + timedelta(microseconds=step)).isoformat(
                    timespec="microseconds"
                ),
                "conf": {},
                "note": note,
            }
            answer = self._call("POST", _RUNS, body)
            if answer.status_code == httpx.codes.OK:
                return
            # 409 alone proves nothing: either this run exists, or another batch has taken the date.
            if answer.status_code != httpx.codes.CONFLICT:
                raise _away(answer)
            if self.get_run(batch_id) is not None:
                return
        raise AirflowAway(f"Airflow has a run at each of {DATES_TRIED_MAX} dates after {created_at}.")

    def get_run(self, batch_id: str) -> Run | None:
        """The batch's run, None if there is none."""
        answer = self._call("GET", f"{_RUNS}/{batch_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if answer.status_code != httpx.codes.OK:
            raise _away(answer)
        told = answer.json()
        return Run(told["state"], told.get("end_date"))

    def live_runs(self) -> set[str]:
        """Ids of every run that is queued or running."""
        found: set[str] = set()
        while True:
            page = f"state=queued&state=running&order_by=id&limit={PAGE}&offset={len(found)}"
            answer = self._call("GET", f"{_RUNS}?{page}")
            if answer.status_code != httpx.codes.OK:
                raise _away(answer)
            runs = [run["dag_run_id"] for run in answer.json()["dag_runs"]]
            found.update(runs)
            if len(runs) < PAGE:
                return found

    def clear_from(self, batch_id: str, task_id: str) -> None:
        """Let an ended run go on from this task: it and all after it run again, in the same run.

        Raises:
            RunNotFound: there is no such run to go on with.
        """
        body = {
            "dry_run": False,
            "dag_run_id": batch_id,
            "task_ids": [task_id],
            "include_downstream": True,
            "only_failed": False,
            "reset_dag_runs": True,
        }
        answer = self._call("POST", f"/api/v2/dags/{DAG}/clearTaskInstances", body)
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise RunNotFound(f"Airflow has no run {batch_id}: {_said(answer)}")
        if answer.status_code != httpx.codes.OK:
            raise _away(answer)

    def note(self, batch_id: str, text: str) -> None:
        """Put a note (Markdown, at most 1,000 characters) on the batch's run; no run, no note."""
        answer = self._call("PATCH", f"{_RUNS}/{batch_id}?update_mask=note", {"note": text[:1_000]})
        if answer.status_code not in (httpx.codes.OK, httpx.codes.NOT_FOUND):
            raise _away(answer)

    def ready(self) -> bool:
        """Whether Airflow answers, knows our DAG, and would run it (a paused DAG takes runs and starts none)."""
        answer = self._call("GET", f"/api/v2/dags/{DAG}")
        return answer.status_code == httpx.codes.OK and not answer.json()["is_paused"]

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One call with the cached token; a refused token is renewed once (it lives a day, a restart ends it)."""
        try:
            token = self._token or self._renewed(None)
            answer = self._sent(method, path, body, token)
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                answer = self._sent(method, path, body, self._renewed(token))
        except httpx.HTTPError as error:
            raise AirflowAway(f"Airflow does not answer: {type(error).__name__}.") from error
        if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise _away(answer)
        return answer

    def _sent(self, method: str, path: str, body: Any, token: str) -> httpx.Response:
        return self._client.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})

    def _renewed(self, refused: str | None) -> str:
        with self._lock:
            if self._token is not None and self._token != refused:
                return self._token
            answer = self._client.post("/auth/token", json=self._credentials)
            if answer.status_code != httpx.codes.CREATED:
                raise AirflowAway(f"Airflow gives its service user no token: HTTP {answer.status_code}.")
            token: str = answer.json()["access_token"]
            self._token = token
            return token


def _said(answer: httpx.Response) -> str:
    return answer.text[:500]


def _away(answer: httpx.Response) -> AirflowAway:
    return AirflowAway(f"Airflow answered HTTP {answer.status_code}: {_said(answer)}")
