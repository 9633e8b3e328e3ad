"""A stand-in for Airflow's REST API, as the real one answered: runs in a dict, and failures on demand."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import httpx

from gridline.keeper.airflow import Airflow


@dataclass
class FakeAirflow:
    """Holds runs by id; ``away`` breaks connections, ``tokens`` are the ones it still takes."""

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    away: bool = False
    broken: int | None = None
    tokens: list[str] = field(default_factory=list)
    token_calls: int = 0
    cleared: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def client(self) -> Airflow:
        """The keeper's client, talking to this."""
        return Airflow("http://airflow.test", "keeper", "secret", transport=httpx.MockTransport(self.answer))

    def run(self, run_id: str, state: str) -> None:
        """Put a run there, or change its state."""
        self.runs.setdefault(run_id, {"dag_run_id": run_id, "logical_date": None, "note": None})["state"] = (
            state
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        """One call."""
        if self.away:
            raise httpx.ConnectError("refused", request=request)
        if request.url.path == "/auth/token":
            self.token_calls += 1
            self.tokens = [f"token-{self.token_calls}"]
            return httpx.Response(201, json={"access_token": self.tokens[0]})
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return httpx.Response(401, json={"detail": "Invalid JWT token"})
        if self.broken is not None:
            return httpx.Response(self.broken, json={"detail": "broken"})
        body = json.loads(request.content) if request.content else {}
        return self._routed(request, body)

    def _routed(self, request: httpx.Request, body: dict[str, Any]) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v2/dags/batch")
        one = re.fullmatch(r"/dagRuns/([^/]+)", path)
        if path == "/clearTaskInstances":
            return self._clear(body)
        if path == "/dagRuns" and request.method == "POST":
            return self._start(body)
        if path == "/dagRuns":
            return self._page(request.url.params)
        if path == "":
            return httpx.Response(200, json={"is_paused": False})
        if one is None or one[1] not in self.runs:
            return httpx.Response(404, json={"detail": "not found"})
        if request.method == "PATCH":
            self.runs[one[1]]["note"] = body["note"]
        return httpx.Response(200, json=self.runs[one[1]])

    def _start(self, body: dict[str, Any]) -> httpx.Response:
        run_id, date = body["dag_run_id"], body["logical_date"]
        taken = any(run["logical_date"] == date for run in self.runs.values())
        if run_id in self.runs or taken:
            return httpx.Response(409, json={"detail": {"reason": "Unique constraint violation"}})
        self.runs[run_id] = {
            "dag_run_id": run_id,
            "logical_date": date,
            "state": "queued",
            "note": body["note"],
        }
        return httpx.Response(200, json={"dag_run_id": run_id})

    def _page(self, query: httpx.QueryParams) -> httpx.Response:
        states, offset = query.get_list("state"), int(query["offset"])
        found = [run for run in self.runs.values() if run["state"] in states]
        page = [{"dag_run_id": run["dag_run_id"]} for run in found[offset : offset + int(query["limit"])]]
        return httpx.Response(200, json={"dag_runs": page})

    def _clear(self, body: dict[str, Any]) -> httpx.Response:
        run_id = body["dag_run_id"]
        if run_id not in self.runs:
            return httpx.Response(404, json={"detail": "no such run"})
        self.cleared.append((run_id, body))
        self.runs[run_id]["state"] = "queued"
        return httpx.Response(200, json={"task_instances": []})
