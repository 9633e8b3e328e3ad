"""The stack's programs: what each is started with, what it may see, and how it is stopped."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from gridline.errors import SettingInvalid
from gridline.operate.stack.airflow_environment import GPU_QUEUE, airflow_environment
from gridline.settings import Executor, Settings, inherited_environment

DATABASE = "postgres"
INITIALISING = "init"
WARMING = "models"

_NOT_FOR_PAGES = frozenset(
    {
        "GRIDLINE_DATABASE_URL",
        "GRIDLINE_DATABASE_OWNER_URL",
        "GRIDLINE_DATABASE_ADMIN_URL",
        "GRIDLINE_AIRFLOW_DATABASE_URL",
        "GRIDLINE_AIRFLOW_PASSWORD",
        "GRIDLINE_CELERY_BROKER_URL",
        "GRIDLINE_TOKEN_PEPPER",
    }
)
"""A customer-facing page is given no way into a database."""

_DASHBOARD_ONLY = frozenset({"GRIDLINE_OIDC_CLIENT_SECRET"})
_NOT_FOR_ENGINES = _NOT_FOR_PAGES | _DASHBOARD_ONLY

_STOP_SECONDS = {"airflow-scheduler": 20, "airflow-worker": 20, "airflow-gpu-worker": 20}


@dataclass(frozen=True)
class Program:
    """One supervised program. ``once``: it ends by itself, successfully; ``waits``: it starts after ``init``.

    ``added`` is asked when the program starts: what it reads of secrets may not be on machines that run other parts.
    """

    name: str
    argv: tuple[str, ...]
    added: Callable[[], Mapping[str, str]] = dict
    hidden: frozenset[str] = _DASHBOARD_ONLY
    waits: bool = True
    once: bool = False
    stop_signal: str = "TERM"
    stop_seconds: int = 15
    stop_group: bool = True

    def environment(self) -> dict[str, str]:
        """All that the program gets to see: what this process sees, less what is hidden, and its own."""
        # Bytecode is kept: a program that may not write it parses every source file at every start.
        hidden = self.hidden | {"PYTHONDONTWRITEBYTECODE"}
        return inherited_environment(without=hidden) | {"PYTHONUNBUFFERED": "1"} | dict(self.added())


def programs(config: Settings) -> dict[str, Program]:
    """Every program of the stack that runs here (``GRIDLINE_PARTS``) by name, in the order of starting.

    Raises:
        SettingInvalid: a part that this stack does not have.
    """
    found = {one.name: one for one in [*_foundation(config), *_airflow(config), *_ours(config)]}
    wanted = parts(config)
    unknown = sorted(wanted - set(found))
    if unknown:
        raise SettingInvalid(
            f"GRIDLINE_PARTS names {', '.join(unknown)}, which this stack does not have. It has {', '.join(found)}."
        )
    return {name: one for name, one in found.items() if name in wanted} if wanted else found


def parts(config: Settings) -> set[str]:
    """The programs that were named to run here; none named means all."""
    return {name.strip() for name in config.parts.split(",") if name.strip()}


def worker_name(program: str) -> str:
    """What Celery calls a worker program, before ``@`` and the host."""
    return program.removeprefix("airflow-")


def _module(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", name, *arguments)


def _foundation(config: Settings) -> list[Program]:
    engine = config.engine_interpreter
    found = [
        Program(INITIALISING, _module("gridline.operate.stack.initialising"), waits=False, once=True),
        Program(
            "engine-keeper", (engine, "-m", "gpu_jobs.engine_keeper"), hidden=_NOT_FOR_ENGINES, waits=False,
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
    # What runs tasks waits for them, and the GPU jobs of those need 10 s to flush.
    arguments: dict[str, tuple[str, ...]] = {
        "airflow-api-server": ("api-server",),
        "airflow-scheduler": ("scheduler",),
        "airflow-dag-processor": ("dag-processor",),
        "airflow-triggerer": ("triggerer",),
    }
    if config.airflow_executor is Executor.CELERY:
        worker = ("celery", "worker", "--without-mingle", "--without-gossip", "--celery-hostname")
        arguments |= {
            "airflow-worker": (*worker, f"{worker_name('airflow-worker')}@%h", "--queues", "default"),
            "airflow-gpu-worker": (
                *worker,
                f"{worker_name('airflow-gpu-worker')}@%h",
                "--queues",
                GPU_QUEUE,
                *_logs(config),
            ),
        }
    return [
        Program(
            name,
            _module("airflow", *given),
            added=partial(airflow_environment, config),
            stop_seconds=_STOP_SECONDS.get(name, 15),
        )
        for name, given in arguments.items()
    ]


def _logs(config: Settings) -> tuple[str, ...]:
    """Of two workers on one machine the other one serves the logs of both: the port is one for all machines."""
    beside = not config.parts or "airflow-worker" in parts(config)
    return ("--skip-serve-logs",) if beside else ()


def _ours(config: Settings) -> list[Program]:
    return [
        Program("api", _module("api.serve")),
        Program("keeper", _module("gridline.keeper")),
        Program(
            "dashboard",
            _module("dashboard"),
            added=lambda: {
                "GRIDLINE_API_URL": config.public_api_url,
                "GRIDLINE_API_INTERNAL_URL": config.reachable_api_url,
            },
            hidden=_NOT_FOR_PAGES,
        ),
    ]
