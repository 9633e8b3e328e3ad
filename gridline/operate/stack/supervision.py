"""The supervisor's configuration: restarts with back-off, stops whole process groups, rotates logs. No secret in it."""

import os
import resource
import sys

from gridline.operate.stack.places import Places
from gridline.operate.stack.programs import DATABASE, Program, programs
from gridline.settings import ROOT, Settings

GROUP = "parts"
OPEN_FILES_WANTED = 8192
"""The triggerer holds one log file for each waiting run."""
LOG_BYTES_MAX = "10MB"
LOG_BACKUPS = 3


def write(config: Settings) -> None:
    """Write the configuration of this installation's supervisor."""
    places = Places(config)
    found = programs(config)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, hard)
    sections = [
        ("unix_http_server", {"file": str(places.socket), "chmod": "0600"}),
        (
            "supervisord",
            {
                "nodaemon": "true",
                "directory": str(ROOT),
                "pidfile": str(places.supervisor_pid),
                "logfile": str(places.logs / "supervisord.log"),
                "logfile_maxbytes": LOG_BYTES_MAX,
                "logfile_backups": str(LOG_BACKUPS),
                "minfds": str(files),
                "childlogdir": str(places.logs),
                # Says that running as root is meant; PostgreSQL still runs as its own user.
                **({"user": "root"} if os.geteuid() == 0 else {}),
            },
        ),
        (
            "rpcinterface:supervisor",
            {"supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"},
        ),
        ("supervisorctl", {"serverurl": f"unix://{places.socket}"}),
        *((f"program:{name}", _program(one, places)) for name, one in found.items()),
        # Groups stop one after the other, what is in a group stops at once: the database goes last, alone.
        (
            f"group:{GROUP}",
            {"programs": ",".join(name for name in found if name != DATABASE), "priority": "900"},
        ),
    ]
    for one in found.values():
        one.environment()  # what is missing for a program is said now, not in its log
    text = "\n".join(_section(title, values) for title, values in sections)
    places.configuration.write_text(f"; Written anew at every start.\n{text}")


def _program(program: Program, places: Places) -> dict[str, str]:
    return {
        "command": f'"{sys.executable}" -m gridline.operate.stack.tether {program.name}',
        "priority": "1" if program.name == DATABASE else "900",
        "autorestart": "unexpected" if program.once else "true",
        "exitcodes": "0",
        # A start that fails within startsecs is tried again one second later each time.
        "startsecs": "0" if program.once else "5",
        "startretries": "1000",
        "stopsignal": program.stop_signal,
        "stopwaitsecs": str(program.stop_seconds),
        "stopasgroup": str(program.stop_group).lower(),
        "killasgroup": "true",
        "redirect_stderr": "true",
        "stdout_logfile": str(places.logs / f"{program.name}.log"),
        "stdout_logfile_maxbytes": LOG_BYTES_MAX,
        "stdout_logfile_backups": str(LOG_BACKUPS),
    }


def _section(title: str, values: dict[str, str]) -> str:
    # The supervisor expands %(name)s, so every percent sign of ours is doubled.
    return "\n".join(
        [f"[{title}]", *(f"{name}={value.replace('%', '%%')}" for name, value in values.items()), ""]
    )
