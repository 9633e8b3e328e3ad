"""Roles and databases on a server of the operator's own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from gridline.errors import SettingInvalid, Unavailable
from gridline.operate import postgres, provisioning
from gridline.settings import Settings


def url(server: postgres.Postgres, user: str, password: str, database: str) -> str:
    """A SQLAlchemy URL on the tests' server."""
    return f"postgresql+psycopg://{user}:{password}@127.0.0.1:{server.port}/{database}"


@pytest.fixture
def named(server: postgres.Postgres, tmp_path: Path) -> Iterator[Settings]:
    """Settings that name two new databases on the tests' server, whose roles are there already."""
    found = Settings(
        state_dir=tmp_path,
        database_admin_url=url(server, "postgres", server.password("postgres"), "postgres"),
        database_owner_url=url(server, postgres.OWNER, server.password(postgres.OWNER), "own_domain"),
        database_url=url(server, postgres.APP, server.password(postgres.APP), "own_domain"),
        airflow_database_url=url(server, postgres.AIRFLOW, server.password(postgres.AIRFLOW), "own_airflow"),
    )
    yield found
    with server.connect("postgres") as connection:
        for name in ("own_domain", "own_airflow"):
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )


def enters(address: str) -> bool:
    """Whether that role may enter that database."""
    try:
        psycopg.connect(address.replace("+psycopg", "")).close()
    except psycopg.OperationalError:
        return False
    return True


def test_databases_are_made_once_and_only_for_their_roles(server: postgres.Postgres, named: Settings) -> None:
    """Made twice is made once; each role enters its own database and Airflow's not the domain's."""
    provisioning.provision_named(named)
    provisioning.provision_named(named)
    assert enters(named.database_url)
    assert enters(named.database_owner_url)
    assert enters(named.airflow_database_url)
    assert not enters(url(server, postgres.AIRFLOW, server.password(postgres.AIRFLOW), "own_domain"))


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        (
            "database_url",
            "postgresql+psycopg://me:p@h/d",
            "GRIDLINE_DATABASE_URL must name the role gridline_app",
        ),
        ("database_owner_url", "", "GRIDLINE_DATABASE_OWNER_URL must be postgresql"),
        ("airflow_database_url", "h/d", "GRIDLINE_AIRFLOW_DATABASE_URL must be postgresql"),
    ],
)
def test_a_url_that_cannot_be_meant_is_refused(named: Settings, setting: str, value: str, told: str) -> None:
    """Before anything is made, by the setting's name, and never with a password in it."""
    given: dict[str, Any] = {setting: value}
    with pytest.raises(SettingInvalid, match=told) as raised:
        provisioning.provision_named(replace(named, **given))
    assert ":p@" not in raised.value.message
    assert not enters(named.database_url)


def test_a_superuser_who_is_not_let_in_is_a_sentence(server: postgres.Postgres, named: Settings) -> None:
    """The supervisor tries again; the sentence names the setting."""
    wrong = url(server, "postgres", "wrong", "postgres")
    with pytest.raises(Unavailable, match="GRIDLINE_DATABASE_ADMIN_URL"):
        provisioning.provision_named(replace(named, database_admin_url=wrong))
