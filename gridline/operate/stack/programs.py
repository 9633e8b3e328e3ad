"""The stack's programs: what each is started with, what it may see, and how it is stopped."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from gridline.operate.stack.airflow_environment import airflow_environment
from gridline.settings import Settings, inherited_environment

DATABASE = "postgres"
INITIALISING = "init"
WARMING = "models"

_NOT_FOR_PAGES = frozenset(
    {
        "GRIDLINE_DATABASE_URL",
        "GRIDLINE_DATABASE_OWNER_URL",
        "GRIDLINE_AIRFLOW_DATABASE_URL",
        "GRIDLINE_AIRFLOW_PASSWORD",
        "GRIDLINE_TOKEN_PEPPER",
    }
)
"""A customer-facing page is given no way into a database."""


@dataclass(frozen=True)
class Program:
    """One supervised program. ``once``: it ends by itself, successfully; ``waits``: it starts after ``init``."""

    name: str
    argv: tuple[str, ...]
    added: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    waits: bool = True
    once: bool = False
    stop_signal: str = "TERM"
    stop_seconds: int = 15
    stop_group: bool = True

    def environment(self) -> dict[str, str]:
        """All that the program gets to see: what this process sees, less what is hidden, and its own."""
        # Bytecode is kept: a program that may not write it parses every source file at every start.
        hidden = self.hidden | {"PYTHONDONTWRITEBYTECODE"}
        return inherited_environment(without=hidden) | {"PYTHONUNBUFFERED": "1"} | dict(self.added)


def programs(config: Settings) -> dict[str, Program]:
    """Every program of the stack by name, in the order of starting."""
    found = [*_foundation(config), *_airflow(config), *_ours(config)]
    return {one.name: one for one in found}


def _module(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", name, *arguments)


def _foundation(config: Settings) -> list[Program]:
    engine = config.engine_interpreter
    found = [
        Program(INITIALISING, _module("gridline.operate.stack.initialising"), waits=False, once=True),
        Program(
            "engine-keeper", (engine, "-m", "gpu_jobs.engine_keeper"), hidden=_NOT_FOR_PAGES, waits=False,
            stop_seconds=20,
        ),
        Program(WARMING, _module("gridline.operate.stack.warming"), waits=False, once=True),
    ]  # fmt: skip
    if not config.database_url:
        # SIGINT is PostgreSQL's fast stop: it rolls back what is open. Only the server itself may be told.
        server = Program(
            DATABASE, _module("gridline.operate.postgres"), waits=False, stop_signal="INT", stop_seconds=30,
            stop_group=False,
        )  # fmt: skip
        found.insert(0, server)
    return found


def _airflow(config: Settings) -> list[Program]:
    environment = airflow_environment(config)
    # The scheduler waits for running tasks, and the GPU jobs of those need 10 s to flush.
    seconds = {"scheduler": 20}
    return [
        Program(
            f"airflow-{name}", _module("airflow", name), added=environment, stop_seconds=seconds.get(name, 15)
        )
        for name in ("api-server", "scheduler", "dag-processor", "triggerer")
    ]


def _ours(config: Settings) -> list[Program]:
    return [
        Program("api", _module("api.serve")),
        Program("keeper", _module("gridline.keeper")),
        Program(
            "dashboard",
            _module("dashboard"),
            added={"GRIDLINE_API_URL": config.public_api_url},
            hidden=_NOT_FOR_PAGES,
        ),
    ]
