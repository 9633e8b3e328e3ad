"""What the supervisor and its programs are told."""

import configparser
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gridline.errors import SettingInvalid
from gridline.operate import postgres, secrets
from gridline.operate.stack import ports, readiness, supervision
from gridline.operate.stack.airflow_environment import airflow_environment
from gridline.operate.stack.initialising import setup_fingerprint
from gridline.operate.stack.places import Places
from gridline.operate.stack.programs import programs
from gridline.settings import Executor, Settings

EXTERNAL: dict[str, Any] = {
    "database_url": "postgresql+psycopg://app:p@db/gridline",
    "database_owner_url": "postgresql+psycopg://owner:p@db/gridline",
    "airflow_database_url": "postgresql+psycopg://airflow:p@db/airflow",
}


@pytest.fixture
def config(state_dir: Path) -> Settings:
    """Settings of a state folder with its secrets."""
    found = Settings(state_dir=state_dir / "with % and space")
    Places(found).make()
    secrets.make(found)
    return found


def written(config: Settings) -> configparser.RawConfigParser:
    """The supervisor's configuration as written."""
    supervision.write(config)
    parser = configparser.RawConfigParser()
    parser.read_string(Places(config).configuration.read_text())
    return parser


def test_every_program_is_restarted_and_stopped_by_its_group(config: Settings) -> None:
    """What dies comes back; a stop reaches a program's children too; the server alone is told of its own stop."""
    parser = written(config)
    for name, program in programs(config).items():
        section = parser[f"program:{name}"]
        assert section["autorestart"] == ("unexpected" if program.once else "true")
        assert section["killasgroup"] == "true"
        assert section["stopasgroup"] == str(name != "postgres").lower()
    assert parser["program:postgres"]["stopsignal"] == "INT"


def test_the_database_stops_last(config: Settings) -> None:
    """Groups stop one after the other from the highest priority down: the database has the lowest, alone."""
    parser = written(config)
    members = parser["group:parts"]["programs"].split(",")
    assert set(members) == set(programs(config)) - {"postgres"}
    assert int(parser["program:postgres"]["priority"]) < int(parser["group:parts"]["priority"])


def test_the_configuration_holds_no_secret(config: Settings) -> None:
    """No password or key is written where a log or a process list might show it."""
    supervision.write(config)
    text = Places(config).configuration.read_text()
    found = [path.read_text() for path in config.secrets_dir.iterdir()]
    assert found
    assert [value for value in found if value in text] == []


def test_pages_and_engines_are_shown_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dashboard and the engines run without a way into a database, even where the operator named one."""
    config = replace(Settings(state_dir=tmp_path), **EXTERNAL)
    secrets.make(config)
    for name, value in EXTERNAL.items():
        monkeypatch.setenv(f"GRIDLINE_{name.upper()}", value)
    monkeypatch.setenv("GRIDLINE_TOKEN_PEPPER", "pepper")
    found = programs(config)
    assert "GRIDLINE_DATABASE_URL" in found["api"].environment()
    for name in ("dashboard", "engine-keeper"):
        seen = found[name].environment()
        assert [value for value in seen.values() if "psycopg" in value or value == "pepper"] == []


def test_the_secret_at_the_identity_provider_is_the_dashboards(
    config: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other program runs without it; API and dashboard both know whom to believe."""
    monkeypatch.setenv("GRIDLINE_OIDC_CLIENT_SECRET", "hush")
    monkeypatch.setenv("GRIDLINE_OIDC_ISSUER", "https://id.example")
    seen = {name: one.environment() for name, one in programs(config).items()}
    assert [name for name, one in seen.items() if "hush" in one.values()] == ["dashboard"]
    assert {seen[name]["GRIDLINE_OIDC_ISSUER"] for name in ("api", "dashboard")} == {"https://id.example"}


def test_programs_keep_their_bytecode(config: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that forbids bytecode does not make every program parse every source file at every start."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert all("PYTHONDONTWRITEBYTECODE" not in one.environment() for one in programs(config).values())


def test_a_database_of_ones_own_replaces_the_embedded_server(tmp_path: Path) -> None:
    """With GRIDLINE_DATABASE_URL no server is started, and Airflow goes to the database named for it."""
    config = replace(Settings(state_dir=tmp_path), **EXTERNAL)
    secrets.make(config)
    assert "postgres" not in programs(config)
    environment = airflow_environment(config)
    assert environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == EXTERNAL["airflow_database_url"]


def test_a_database_without_one_for_airflow_is_refused(tmp_path: Path) -> None:
    """The missing half is named before anything starts."""
    config = Settings(state_dir=tmp_path, database_url=EXTERNAL["database_url"])
    secrets.make(config)
    Places(config).make()
    with pytest.raises(SettingInvalid, match="GRIDLINE_AIRFLOW_DATABASE_URL"):
        supervision.write(config)


def test_airflow_is_set_up_anew_when_something_of_it_changes(config: Settings) -> None:
    """The fingerprint stays with the installation and moves with a password, a port or the parallelism."""
    environment = airflow_environment(config)
    before = setup_fingerprint(config, environment)
    assert setup_fingerprint(config, airflow_environment(config)) == before
    assert setup_fingerprint(config, environment | {"AIRFLOW__CORE__PARALLELISM": "3"}) != before
    (config.secrets_dir / "airflow_password").write_text("another")
    assert setup_fingerprint(config, environment) != before


def test_a_taken_port_is_refused_by_the_name_of_its_setting(tmp_path: Path) -> None:
    """The message names port and setting; a free one passes."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        given: dict[str, Any] = dict.fromkeys(_port_names(), 0) | {"dashboard_port": taken}
        config = replace(Settings(state_dir=tmp_path), **given)
        with pytest.raises(SettingInvalid, match=f"port {taken} .*GRIDLINE_DASHBOARD_PORT"):
            ports.require_free(config)
    ports.require_free(config)


def _port_names() -> list[str]:
    return [name for name in Settings.__dataclass_fields__ if name.endswith("_port")]


def test_every_port_is_looked_at(config: Settings) -> None:
    """No setting of a port is forgotten by the early look."""
    looked = {name.partition(" ")[0] for name in ports.ports(config)}
    assert looked == {f"GRIDLINE_{name.upper()}" for name in _port_names()}


def test_a_state_folder_too_deep_for_a_socket_is_refused(tmp_path: Path) -> None:
    """A Unix socket's path is short; the message says how long it may be."""
    with pytest.raises(SettingInvalid, match="GRIDLINE_STATE_DIR is too long"):
        Places(Settings(state_dir=tmp_path / ("deep" * 30))).make()


def test_airflow_reaches_the_embedded_server_as_its_own_role(config: Settings) -> None:
    """Airflow's password opens Airflow's database, not the domain's."""
    url = airflow_environment(config)["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert url.startswith(f"postgresql+psycopg://{postgres.AIRFLOW}:")
    assert url.endswith(f":{config.database_port}/airflow")


def test_only_the_named_parts_run_here(config: Settings) -> None:
    """GRIDLINE_PARTS splits the stack over machines: programs, ports and what is waited for are those of the part."""
    here = replace(config, parts="engine-keeper, dashboard")
    assert set(programs(here)) == {"engine-keeper", "dashboard"}
    assert set(ports.ports(here)) == {"GRIDLINE_DASHBOARD_PORT"}
    assert [one.name for one in readiness.checks(here)] == ["engine keeper", "dashboard"]
    with pytest.raises(SettingInvalid, match=r"GRIDLINE_PARTS names engine, which .* engine-keeper, "):
        programs(replace(config, parts="engine,api"))


def test_a_machine_of_other_parts_needs_no_secret_of_airflow(tmp_path: Path) -> None:
    """The dashboard's machine starts where no secret was ever made; Airflow's says which one is missing."""
    config = Settings(state_dir=tmp_path, parts="dashboard")
    assert programs(config)["dashboard"].environment()["GRIDLINE_API_INTERNAL_URL"] == config.public_api_url
    with pytest.raises(SettingInvalid, match="GRIDLINE_AIRFLOW_FERNET_KEY"):
        programs(replace(config, parts="airflow-triggerer", **EXTERNAL))["airflow-triggerer"].environment()


def test_celery_brings_two_workers_and_needs_a_queue(config: Settings) -> None:
    """With workers, GPU jobs have a queue of their own; without a broker nothing starts, and the setting is named."""
    assert not any("worker" in name for name in programs(config))
    without = replace(config, airflow_executor=Executor.CELERY)
    with pytest.raises(SettingInvalid, match="GRIDLINE_CELERY_BROKER_URL"):
        airflow_environment(without)
    celery = replace(without, celery_broker_url="redis://:secret@queue:6379/0")
    assert airflow_environment(celery)["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"
    queues = {
        name: one.argv[one.argv.index("--queues") + 1]
        for name, one in programs(celery).items()
        if "worker" in name
    }
    assert queues == {"airflow-worker": "default", "airflow-gpu-worker": "gpu"}


@pytest.mark.parametrize(("parts", "skipped"), [("", True), ("airflow-gpu-worker", False)])
def test_a_gpu_worker_serves_its_logs_unless_another_does(
    config: Settings, parts: str, skipped: bool
) -> None:
    """On a machine of its own nobody else could serve them; beside the other worker the port is taken."""
    celery = replace(config, airflow_executor=Executor.CELERY, celery_broker_url="redis://queue", parts=parts)
    assert ("--skip-serve-logs" in programs(celery)["airflow-gpu-worker"].argv) == skipped
