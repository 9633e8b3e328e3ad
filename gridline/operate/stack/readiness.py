"""Whether each part of a running stack answers, asked from outside as a user would."""

from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from xmlrpc.client import Fault, ServerProxy

import httpx
from supervisor.xmlrpc import SupervisorTransport

from gridline.operate.engines import keeper
from gridline.operate.stack.places import Places
from gridline.settings import Settings

ANSWER_SECONDS = 3


@dataclass(frozen=True)
class Check:
    """One part: its name, and a question that returns what is missing, or None when it is ready."""

    name: str
    missing: Callable[[], str | None]


def checks(config: Settings) -> list[Check]:
    """Every part of the stack, in the order in which they come up."""
    places = Places(config)
    return [
        Check("databases", lambda: _initialised(places)),
        Check("engine keeper", lambda: _engine_keeper(config)),
        Check("API", lambda: _answers(f"http://{config.api_host}:{config.api_port}/readyz")),
        Check("dashboard", lambda: _answers(f"http://127.0.0.1:{config.dashboard_port}/_stcore/health")),
        Check("Airflow", lambda: _airflow(config)),
        Check("keeper", lambda: _answers(f"http://127.0.0.1:{config.metrics_port}/metrics")),
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


def _airflow(config: Settings) -> str | None:
    """All four of Airflow's parts; its health page answers 200 whatever it says."""
    try:
        answer = httpx.get(
            f"http://127.0.0.1:{config.airflow_port}/api/v2/monitor/health", timeout=ANSWER_SECONDS
        )
        found = answer.json()
    except (httpx.HTTPError, ValueError):
        return "no answer yet"
    sick = [name for name, state in found.items() if (state or {}).get("status") != "healthy"]
    return f"waiting for {', '.join(sick)}" if sick else None
