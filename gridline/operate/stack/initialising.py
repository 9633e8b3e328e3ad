"""Makes everything ready that the parts need, once at every start: store, databases, schema, pools, Airflow's setup.

Every step may run again at any time. The parts wait for the mark that this leaves.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from gridline.operate import airflow_setup, migrate, postgres, provisioning, secrets
from gridline.operate.stack.airflow_environment import airflow_environment
from gridline.operate.stack.places import Places
from gridline.settings import ROOT, Settings, inherited_environment, settings
from gridline.storage import store
from gridline.storage.trial import require_create_once

TRY_AGAIN_SECONDS = 3


def initialise(config: Settings) -> None:
    """Run every step, with its seconds on the log."""
    steps: list[tuple[str, Callable[[Settings], None]]] = [
        ("object store", lambda _: require_create_once(store())),
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
    if config.database_admin_url:
        provisioning.provision_named(config)
    elif not config.database_url:  # whoever runs a server of their own made all that: docs/configuration.md
        server = postgres.embedded(config)
        server.wait()
        provisioning.provision_embedded(server)


def _set_up_airflow(config: Settings) -> None:
    environment = airflow_environment(config)
    # Beside the embedded cluster's data, so that it goes when the data goes; a server of someone else's is set up
    # at every start.
    mark = postgres.embedded(config).folder / "airflow-set-up"
    wanted = setup_fingerprint(config, environment)
    if not config.database_url and mark.exists() and mark.read_text() == wanted:
        return
    # Its own process: Airflow reads its configuration when it is imported.
    subprocess.run(
        [sys.executable, "-m", "gridline.operate.airflow_setup"],
        check=True,
        cwd=ROOT,
        env=inherited_environment() | environment,
    )
    if not config.database_url:
        mark.write_text(wanted)


def setup_fingerprint(config: Settings, environment: Mapping[str, str]) -> str:
    """Changes with whatever Airflow's setup depends on: versions, code, configuration, users and passwords."""
    packages = ("apache-airflow-core", "apache-airflow-providers-fab", "apache-airflow-providers-standard")
    parts = [
        *(version(name) for name in packages),
        Path(airflow_setup.__file__).read_text(),
        (ROOT / "airflow.cfg").read_text(),
        config.airflow_user,
        *(config.secret(name) for name in ("airflow_password", secrets.AIRFLOW_ADMIN_PASSWORD)),
        *(f"{name}={value}" for name, value in sorted(environment.items())),
    ]
    return sha256("\0".join(parts).encode()).hexdigest()


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
