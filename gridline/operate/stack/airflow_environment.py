"""What Airflow's programs are told through their environment: addresses, ports and secrets of this installation.

Everything that is the same on every installation stands in ``airflow.cfg`` with its reason.
"""

from urllib.parse import urlsplit

from gridline.errors import SettingInvalid
from gridline.operate import postgres, secrets
from gridline.operate.stack.places import Places
from gridline.settings import ROOT, Executor, Settings

GPU_QUEUE = "gpu"
"""The Celery queue of the workers that run GPU jobs; without workers it means nothing."""


def airflow_database_url(config: Settings) -> str:
    """Airflow's own database: the one that was named, or the embedded server's.

    Raises:
        SettingInvalid: the domain's database was named and Airflow's was not.
    """
    if config.airflow_database_url:
        return config.airflow_database_url
    if config.database_url:
        raise SettingInvalid(
            "GRIDLINE_DATABASE_URL is set, so the embedded PostgreSQL does not run: "
            "set GRIDLINE_AIRFLOW_DATABASE_URL to a database of Airflow's own as well."
        )
    return postgres.embedded(config).url(postgres.AIRFLOW, "airflow")


def airflow_environment(config: Settings) -> dict[str, str]:
    """Every ``AIRFLOW__`` variable of this installation, and Airflow's home."""
    database = airflow_database_url(config)
    port = urlsplit(config.public_airflow_url).port or config.airflow_port
    return _executor(config, database) | {
        "AIRFLOW_HOME": str(ROOT),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{config.reachable_airflow_url}/execution/",
        "AIRFLOW__CORE__PARALLELISM": str(config.airflow_parallelism),
        "AIRFLOW__CORE__FERNET_KEY": config.secret(secrets.AIRFLOW_FERNET_KEY),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
        # psycopg speaks both ways; left alone, Airflow guesses a driver that is not installed.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": database,
        "AIRFLOW__API__HOST": config.airflow_host,
        "AIRFLOW__API__PORT": str(config.airflow_port),
        "AIRFLOW__API__BASE_URL": config.airflow_url or f"http://127.0.0.1:{port}",
        "AIRFLOW__API__SECRET_KEY": config.secret(secrets.AIRFLOW_SECRET_KEY),
        "AIRFLOW__API_AUTH__JWT_SECRET": config.secret(secrets.AIRFLOW_JWT_SECRET),
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(Places(config).logs / "airflow"),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(config.airflow_log_port),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(config.airflow_log_port + 1),
    }


def _executor(config: Settings, database: str) -> dict[str, str]:
    """Where tasks run; with workers, how scheduler and workers meet."""
    if config.airflow_executor is Executor.LOCAL:
        return {"AIRFLOW__CORE__EXECUTOR": "LocalExecutor"}
    if not config.celery_broker_url:
        raise SettingInvalid(
            "GRIDLINE_AIRFLOW_EXECUTOR is celery, so scheduler and workers need a queue: "
            "set GRIDLINE_CELERY_BROKER_URL to redis://:password@host:6379/0."
        )
    return {
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CELERY__BROKER_URL": config.celery_broker_url,
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{database}",
        "AIRFLOW__CELERY__WORKER_CONCURRENCY": str(config.airflow_parallelism),
    }
