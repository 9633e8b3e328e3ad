"""The one reader of the environment: every setting with its unit, default and meaning, frozen at first use.

Nothing else in the project reads ``os.environ``. ``docs/configuration.md`` and ``.env.example`` list
the same settings; a house test holds the three equal.
"""

import os
import sys
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from gridline.declaring import (
    KEPT_FROM_JOBS,
    ROOT,
    Executor,
    SignUp,
    checked_issuer,
    default_state_dir,
    hidden,
    parsed,
    setting,
)
from gridline.errors import SettingInvalid

__all__ = [
    "ROOT",
    "Executor",
    "Settings",
    "SignUp",
    "described",
    "engine_environment",
    "env_name",
    "inherited_environment",
    "job_environment",
    "read_settings",
    "settings",
]


@dataclass(frozen=True)
class Settings:
    """Every setting; the environment name is ``GRIDLINE_`` and the field's name in capitals."""

    state_dir: Path = setting(
        default_state_dir, "Folder for the embedded database, objects, models, logs, secrets."
    )
    database_url: str = setting(
        "", "Domain database as the app role, postgresql+psycopg://…; empty: embedded."
    )
    database_owner_url: str = setting("", "The same database as its owner, for migrations; empty: embedded.")
    database_admin_url: str = setting(
        "", "A superuser on that server: init makes roles and databases; empty: they are there."
    )
    database_port: int = setting(54329, "Loopback port of the embedded PostgreSQL.")
    store_url: str = setting(
        "", "Object store: file:///folder or s3://bucket/prefix; empty: state_dir/objects."
    )
    models_dir: str = setting("", "Folder of prepared models; empty: state_dir/models.")
    profile: str = setting("gridline", "The API dialect, a file in gridline/profiles.")
    api_host: str = setting("127.0.0.1", "Address that the API listens on.")
    api_port: int = setting(8000, "Port of the API.")
    api_url: str = setting("", "Public URL of the API; empty: http://127.0.0.1:<api_port>.")
    api_internal_url: str = setting("", "Where the dashboard reaches the API; empty: GRIDLINE_API_URL.")
    trusted_proxy: str = setting(
        "127.0.0.1",
        "Address whose X-Forwarded-For the API believes: a reverse proxy's, the dashboard's; empty: nobody's.",
    )
    sign_up: SignUp = setting(SignUp.OPEN, "Whether customers may sign up by themselves: open or closed.")
    sign_up_credits: str = setting("0", "Credits that an account gets when its customer signs up.")
    oidc_issuer: str = setting(
        "",
        "OpenID Connect provider that customers may sign in with, as it names itself, https://…; empty: none.",
    )
    oidc_client_id: str = setting("", "What the provider calls this platform.")
    oidc_client_secret: str = hidden(
        "What the dashboard proves itself to the provider with; the API does without."
    )
    rate_storage: str = setting(
        "memory://", "Where request rates are counted: memory:// (each process its own) or redis://host:port."
    )
    dashboard_host: str = setting("127.0.0.1", "Address that the dashboard listens on.")
    dashboard_port: int = setting(8501, "Port of the dashboard.")
    dashboard_url: str = setting("", "Public URL of the dashboard; empty: http://127.0.0.1:<dashboard_port>.")
    airflow_host: str = setting("127.0.0.1", "Address that Airflow listens on.")
    airflow_port: int = setting(8080, "Port of the Airflow UI and REST API.")
    airflow_url: str = setting("", "Public URL of Airflow; empty: http://127.0.0.1:<airflow_port>.")
    airflow_internal_url: str = setting(
        "", "Where keeper and tasks reach Airflow; empty: http://127.0.0.1:<airflow_port>."
    )
    airflow_user: str = setting(
        "gridline-keeper", "The keeper's Airflow user: starts, reads, clears, annotates runs."
    )
    airflow_password: str = hidden("Its password; empty: read from the state folder's secrets.")
    airflow_database_url: str = setting(
        "", "Airflow's own database; empty: embedded. Must be set when GRIDLINE_DATABASE_URL is."
    )
    airflow_log_port: int = setting(
        8793, "Loopback port of Airflow's task logs; the next one: its triggerer's."
    )
    airflow_parallelism: int = setting(8, "Airflow tasks at once on this machine; GPU jobs get two fewer.")
    airflow_executor: Executor = setting(
        Executor.LOCAL, "Where tasks run: local (in the scheduler) or celery (workers, on any machine)."
    )
    celery_broker_url: str = setting("", "Queue between scheduler and workers, redis://…; needed for celery.")
    parts: str = setting("", "Programs of the stack that run here, as api,keeper,…; empty: all of them.")
    pools: str = setting(
        '[{"name": "local", "gpus": 1, "models": ["*"], "datacenter": false}]',
        "GPU pools as a JSON list: name, gpus (leases at once), models served, datacenter or not, aws_batch if its jobs run there.",
    )
    deferred_runs_max: int = setting(8, "Runs that may wait inside Airflow; further ones are parked.")
    engine_python: str = setting("", "Python of the engine environment; empty: .venv-engine/bin/python.")
    engine_socket: str = setting("", "Unix socket of the engine keeper; empty: state_dir/run/engines.sock.")
    engine_idle_seconds: int = setting(3600, "An engine idle for longer is stopped.")
    engine_command: str = setting("", "Replaces the engine's start command (tests put a stub engine here).")
    token_pepper: str = hidden("Secret mixed into token hashes; empty: read from the state folder's secrets.")
    webhook_networks: str = setting(
        "", "Private networks that webhooks may reach, as 10.1.0.0/16,…; empty: public addresses only."
    )
    smtp_url: str = setting(
        "", "Mail server, smtp://user:password@host:587 or smtps://…:465; empty: no mail is sent."
    )
    smtp_from: str = setting("", "Sender of the platform's mails; empty: GRIDLINE_OPERATOR_EMAIL.")
    operator_email: str = setting("", "Where customers' messages are mailed to; empty: nowhere.")
    email: str = setting("", "E-mail that `gridline setup` signs in with; empty: it asks.")
    password: str = hidden("Password that `gridline setup` signs in with; empty: it asks, unseen.")
    metrics_host: str = setting("127.0.0.1", "Address of the keeper's /metrics.")
    metrics_port: int = setting(9464, "Port of the keeper's /metrics.")
    log_level: str = setting("INFO", "DEBUG, INFO, WARNING or ERROR.")

    @property
    def secrets_dir(self) -> Path:
        """Folder (mode 0700) of generated secrets, one file each."""
        return self.state_dir / "secrets"

    def secret(self, name: str) -> str:
        """A secret: the setting of that name, or the file that ``gridline up`` generated."""
        given = str(getattr(self, name, ""))
        path = self.secrets_dir / name
        if given:
            return given
        if path.exists():
            return path.read_text().strip()
        raise SettingInvalid(
            f"GRIDLINE_{name.upper()} is not set and {path} does not exist. Set it, or run 'make up' once."
        )

    @property
    def app_database_url(self) -> str:
        """The domain database as the role ``gridline_app`` (no UPDATE or DELETE on ledger entries)."""
        return self.database_url or self._embedded("gridline_app", "gridline")

    @property
    def owner_database_url(self) -> str:
        """The domain database as its owner: migrations only."""
        return self.database_owner_url or self._embedded("gridline_owner", "gridline")

    def _embedded(self, role: str, database: str) -> str:
        password = self.secret(f"database_{role}")
        return f"postgresql+psycopg://{role}:{password}@127.0.0.1:{self.database_port}/{database}"

    @property
    def objects_url(self) -> str:
        """Where objects are kept: ``file://`` or ``s3://``."""
        return self.store_url or (self.state_dir / "objects").absolute().as_uri()

    @property
    def models_folder(self) -> Path:
        """Folder with one prepared model a sub-folder, named by model id."""
        return Path(self.models_dir) if self.models_dir else self.state_dir / "models"

    @property
    def engines_socket(self) -> Path:
        """The engine keeper's Unix socket."""
        return Path(self.engine_socket) if self.engine_socket else self.state_dir / "run" / "engines.sock"

    @property
    def engine_interpreter(self) -> str:
        """Python that runs the engine and the GPU jobs."""
        return self.engine_python or str(ROOT / ".venv-engine" / "bin" / "python")

    @property
    def public_api_url(self) -> str:
        """Base of every API address, without a trailing slash."""
        return (self.api_url or f"http://127.0.0.1:{self.api_port}").rstrip("/")

    @property
    def reachable_api_url(self) -> str:
        """Base of the API's addresses as the dashboard reaches them."""
        return self.api_internal_url.rstrip("/") or self.public_api_url

    @property
    def public_dashboard_url(self) -> str:
        """Base of every dashboard address, without a trailing slash."""
        return (self.dashboard_url or f"http://127.0.0.1:{self.dashboard_port}").rstrip("/")

    @property
    def public_airflow_url(self) -> str:
        """Base of every Airflow address, without a trailing slash."""
        return (self.airflow_url or f"http://127.0.0.1:{self.airflow_port}").rstrip("/")

    @property
    def reachable_airflow_url(self) -> str:
        """Base of Airflow's addresses as the platform's own parts reach them."""
        return (self.airflow_internal_url or f"http://127.0.0.1:{self.airflow_port}").rstrip("/")

    @property
    def sign_in_provider(self) -> str:
        """The issuer that customers may sign in with; "" where there is none.

        Raises:
            SettingInvalid: it is no address that may be trusted, or nobody said what it calls this platform.
        """
        if self.oidc_issuer and not self.oidc_client_id:
            raise SettingInvalid(
                "GRIDLINE_OIDC_ISSUER is set and GRIDLINE_OIDC_CLIENT_ID is not. Set both, or neither."
            )
        return checked_issuer(self.oidc_issuer) if self.oidc_issuer else ""

    def batch_page(self, batch_id: str) -> str:
        """Address of a batch's page in the dashboard."""
        return f"{self.public_dashboard_url}/batch?id={batch_id}"

    def airflow_run_page(self, batch_id: str) -> str:
        """Address of a batch's run in the Airflow UI."""
        return f"{self.public_airflow_url}/dags/batch/runs/{batch_id}"


def env_name(setting: "Field[Any]") -> str:
    """The environment variable of a setting."""
    return f"GRIDLINE_{setting.name.upper()}"


def read_settings(environ: dict[str, str]) -> Settings:
    """Settings from a mapping of environment names; empty values count as absent.

    Raises:
        SettingInvalid: a value that is not of the setting's type, or an unknown GRIDLINE_ name.
    """
    types = get_type_hints(Settings)
    known = {env_name(one): one for one in fields(Settings)}
    unknown = sorted(name for name in environ if name.startswith("GRIDLINE_") and name not in known)
    if unknown:
        raise SettingInvalid(
            f"Unknown setting {', '.join(unknown)}: see docs/configuration.md for the names."
        )
    values: dict[str, Any] = {}
    for name, one in known.items():
        text = environ.get(name, "")
        if text:
            values[one.name] = parsed(name, text, types[one.name])
    return Settings(**values)


def job_environment() -> dict[str, str]:
    """The environment for a GPU job: without what reaches the databases, Airflow or tokens."""
    return {name: value for name, value in os.environ.items() if not name.startswith(KEPT_FROM_JOBS)}


def engine_environment(additions: dict[str, str]) -> dict[str, str]:
    """The environment for an engine: nothing of ours, of Airflow's or of the object store's, plus additions."""
    ours = ("AIRFLOW", "_AIRFLOW", "GRIDLINE_", "AWS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | additions


@cache
def settings() -> Settings:
    """The process's settings, read once."""
    return read_settings(dict(os.environ))


def inherited_environment(*, without: frozenset[str] = frozenset()) -> dict[str, str]:
    """This process's environment for a program that it starts, without these names."""
    return {name: value for name, value in os.environ.items() if name not in without}


def described() -> list[tuple[str, str, str]]:
    """(environment name, default, meaning) of every setting, for the docs and their test."""
    rows = []
    for one in fields(Settings):
        default = "" if one.default is MISSING else str(one.default)
        rows.append((env_name(one), default, one.metadata["meaning"]))
    return rows


if __name__ == "__main__":
    for row in described():
        sys.stdout.write("\t".join(row) + "\n")
