"""The ports of the stack: which there are, and whether they are free."""

import socket

from gridline.errors import SettingInvalid
from gridline.operate.stack.programs import DATABASE, programs
from gridline.settings import Executor, Settings


def ports(config: Settings) -> dict[str, tuple[str, int]]:
    """(address, port) of each listener of this machine, by the setting that moves it."""
    here = programs(config)
    logs = "airflow-scheduler" if config.airflow_executor is Executor.LOCAL else "airflow-worker"
    found = {
        "GRIDLINE_API_PORT": ("api", config.api_host, config.api_port),
        "GRIDLINE_DASHBOARD_PORT": ("dashboard", config.dashboard_host, config.dashboard_port),
        "GRIDLINE_AIRFLOW_PORT": ("airflow-api-server", config.airflow_host, config.airflow_port),
        "GRIDLINE_AIRFLOW_LOG_PORT": (logs, "127.0.0.1", config.airflow_log_port),
        "GRIDLINE_AIRFLOW_LOG_PORT (the next one)": (
            "airflow-triggerer",
            "127.0.0.1",
            config.airflow_log_port + 1,
        ),
        "GRIDLINE_METRICS_PORT": ("keeper", config.metrics_host, config.metrics_port),
        "GRIDLINE_DATABASE_PORT": (DATABASE, "127.0.0.1", config.database_port),
    }
    return {setting: (host, port) for setting, (part, host, port) in found.items() if part in here}


def require_free(config: Settings) -> None:
    """Refuse to start where another program listens already.

    Raises:
        SettingInvalid: says every port that is taken, and the setting that moves it.
    """
    taken = [
        f"port {port} is taken by another program: set {name} to a free one"
        for name, (host, port) in ports(config).items()
        if not _is_free(host, port)
    ]
    if taken:
        raise SettingInvalid(f"The stack cannot start: {'; '.join(taken)}.")


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do it, so that connections of a stack that just ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
