"""Whether each part of a running stack answers, asked from outside as a user would."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from socket import gethostname
from typing import Any
from xmlrpc.client import Fault, ServerProxy

import httpx
from supervisor.xmlrpc import SupervisorTransport

from gridline.operate.engines import keeper
from gridline.operate.stack.airflow_environment import airflow_environment
from gridline.operate.stack.places import Places
from gridline.operate.stack.programs import INITIALISING, programs, worker_name
from gridline.settings import ROOT, Settings, inherited_environment

ANSWER_SECONDS = 3
_AIRFLOW_STATES = {
    "airflow-api-server": "metadatabase",
    "airflow-scheduler": "scheduler",
    "airflow-dag-processor": "dag_processor",
    "airflow-triggerer": "triggerer",
}
"""What Airflow's health page calls each of its programs."""


@dataclass(frozen=True)
class Check:
    """One part: its name, and a question that returns what is missing, or None when it is ready."""

    name: str
    missing: Callable[[], str | None]


def checks(config: Settings, *, of: Iterable[str] | None = None) -> list[Check]:
    """Every part of the stack that runs here, in the order in which they come up; ``of``: of these programs only."""
    here = set(programs(config)) if of is None else set(of)
    places = Places(config)
    found = {
        INITIALISING: Check("databases", lambda: _initialised(places)),
        "engine-keeper": Check("engine keeper", lambda: _engine_keeper(config)),
        "api": Check("API", lambda: _answers(f"http://{config.api_host}:{config.api_port}/readyz")),
        "dashboard": Check(
            "dashboard",
            lambda: _answers(f"http://{config.dashboard_host}:{config.dashboard_port}/_stcore/health"),
        ),
        "keeper": Check(
            "keeper", lambda: _answers(f"http://{config.metrics_host}:{config.metrics_port}/metrics")
        ),
    }
    watched = [state for program, state in _AIRFLOW_STATES.items() if program in here]
    workers = [name for name in ("airflow-worker", "airflow-gpu-worker") if name in here]
    return [
        *(check for program, check in found.items() if program in here),
        *([Check("Airflow", lambda: _airflow(config, watched))] if watched else []),
        *(Check(name, partial(_worker, config, name)) for name in workers),
    ]


def program_states(config: Settings) -> dict[str, str]:
    """The supervisor's word for each program (RUNNING, EXITED, BACKOFF, FATAL …); empty when it does not answer."""
    transport = SupervisorTransport(None, None, f"unix://{Places(config).socket}")
    try:
        with ServerProxy("http://127.0.0.1", transport=transport) as proxy:
            found: Any = proxy.supervisor.getAllProcessInfo()
    except (OSError, Fault, HTTPException):
        return {}
    return {one["name"]: one["statename"] for one in found}


def _initialised(places: Places) -> str | None:
    if places.initialised.exists():
        return None
    return places.trouble.read_text() if places.trouble.exists() else "starting"


def _answers(url: str) -> str | None:
    try:
        answer = httpx.get(url, timeout=ANSWER_SECONDS)
    except httpx.HTTPError:
        return "no answer yet"
    return None if answer.is_success else f"answers {answer.status_code}"


def _engine_keeper(config: Settings) -> str | None:
    try:
        with keeper(config) as client:
            answer = client.get("/healthz", timeout=ANSWER_SECONDS)
    except httpx.HTTPError:
        return "no answer yet"
    return None if answer.is_success else f"answers {answer.status_code}"


def _airflow(config: Settings, watched: list[str]) -> str | None:
    """Those of Airflow's parts; its health page answers 200 whatever it says."""
    try:
        answer = httpx.get(f"{config.reachable_airflow_url}/api/v2/monitor/health", timeout=ANSWER_SECONDS)
        found = answer.json()
    except (httpx.HTTPError, ValueError):
        return "no answer yet"
    sick = [name for name in watched if (found.get(name) or {}).get("status") != "healthy"]
    return f"waiting for {', '.join(sick)}" if sick else None


def _worker(config: Settings, name: str) -> str | None:
    """A Celery worker of this machine, asked over the queue."""
    asked = subprocess.run(
        [sys.executable, "-m", "celery", "--app", "airflow.providers.celery.executors.celery_executor.app",
         "inspect", "ping", "--timeout", str(ANSWER_SECONDS), "--destination", f"{worker_name(name)}@{gethostname()}"],
        check=False, capture_output=True, cwd=ROOT, env=inherited_environment() | airflow_environment(config),
    )  # fmt: skip
    return "no answer yet" if asked.returncode else None
