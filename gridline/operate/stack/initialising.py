"""Makes everything ready that the parts need, once at every start: databases, roles, schema, pools, Airflow's setup.

Every step may run again at any time. The parts wait for the mark that this leaves.
"""

import subprocess
import sys
import time
from collections.abc import Callable

from gridline.operate import migrate, postgres
from gridline.operate.stack.airflow_environment import airflow_environment
from gridline.operate.stack.places import Places
from gridline.settings import ROOT, Settings, inherited_environment, settings

TRY_AGAIN_SECONDS = 3


def initialise(config: Settings) -> None:
    """Run every step, with its seconds on the log."""
    steps: list[tuple[str, Callable[[Settings], None]]] = [
        ("databases and roles", _provision),
        ("domain schema and pools", lambda _: migrate.main()),
        ("Airflow's schema, roles, users and pools", _set_up_airflow),
    ]
    for name, step in steps:
        start = time.monotonic()
        step(config)
        sys.stdout.write(f"{name}: {time.monotonic() - start:.1f} s\n")
        sys.stdout.flush()


def _provision(config: Settings) -> None:
    if config.database_url:
        return  # whoever runs that server made its databases and roles: docs/configuration.md
    server = postgres.embedded(config)
    server.wait()
    server.provision()


def _set_up_airflow(config: Settings) -> None:
    # Its own process: Airflow reads its configuration when it is imported.
    subprocess.run(
        [sys.executable, "-m", "gridline.operate.airflow_setup"],
        check=True,
        cwd=ROOT,
        env=inherited_environment() | airflow_environment(config),
    )


def main() -> int:
    """Initialise and leave the mark; on failure leave the reason for `up` to show, and let the supervisor try again."""
    config = settings()
    places = Places(config)
    try:
        initialise(config)
    except Exception as error:
        places.trouble.write_text(f"{type(error).__name__}: {error}")
        time.sleep(TRY_AGAIN_SECONDS)
        raise
    places.trouble.unlink(missing_ok=True)
    places.initialised.write_text("")
    return 0


if __name__ == "__main__":
    sys.exit(main())
