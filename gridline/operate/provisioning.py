"""Makes roles and the two databases: on the embedded server, or on one whose superuser the settings name.

Every step may run again: what is there stays as it is.
"""

from collections.abc import Mapping

import psycopg
from psycopg import sql
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from gridline.errors import SettingInvalid, Unavailable
from gridline.operate.postgres import AIRFLOW, APP, OWNER, READ, Postgres
from gridline.settings import Settings

Connection = psycopg.Connection[tuple[object, ...]]
CONNECT_SECONDS_MAX = 5


def provision_embedded(server: Postgres) -> None:
    """Roles with the cluster's own passwords, and both databases."""
    with server.connect("postgres") as connection:
        _make_roles(connection, {role: server.password(role) for role in (OWNER, APP, READ, AIRFLOW)})
        create_database(connection, "gridline", OWNER)
        create_database(connection, "airflow", AIRFLOW)


def provision_named(config: Settings) -> None:
    """Roles and databases as the three URLs name them, made by the superuser of ``GRIDLINE_DATABASE_ADMIN_URL``.

    ``gridline_read`` gets no password: who wants to read gives it one.

    Raises:
        SettingInvalid: a URL is missing or cannot be read, or names another role than the one that it is for.
        Unavailable: the server does not answer, or lets the superuser not in.
    """
    owner = _url("GRIDLINE_DATABASE_OWNER_URL", config.database_owner_url, OWNER)
    app = _url("GRIDLINE_DATABASE_URL", config.database_url, APP)
    airflow = _url("GRIDLINE_AIRFLOW_DATABASE_URL", config.airflow_database_url, AIRFLOW)
    admin = _url("GRIDLINE_DATABASE_ADMIN_URL", config.database_admin_url)
    try:
        connection = psycopg.connect(
            host=admin.host, port=admin.port, user=admin.username, password=admin.password,
            dbname=admin.database, autocommit=True, connect_timeout=CONNECT_SECONDS_MAX,
        )  # fmt: skip
    except psycopg.OperationalError as error:
        raise Unavailable(f"The server of GRIDLINE_DATABASE_ADMIN_URL does not let us in: {error}") from error
    with connection:
        _make_roles(
            connection,
            {OWNER: owner.password, APP: app.password, READ: None, AIRFLOW: airflow.password},
        )
        create_database(connection, str(owner.database), OWNER)
        create_database(connection, str(airflow.database), AIRFLOW)


def create_database(
    connection: Connection, database: str, owner: str, *, template: str = "template1"
) -> None:
    """A database that only its owner and granted roles may enter, made unless it is there."""
    known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
    if known is not None:
        return
    name = sql.Identifier(database)
    connection.execute(
        sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(
            name, sql.Identifier(owner), sql.Identifier(template)
        )
    )
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
    if owner == OWNER:
        connection.execute(
            sql.SQL("GRANT CONNECT ON DATABASE {} TO {}, {}").format(
                name, sql.Identifier(APP), sql.Identifier(READ)
            )
        )


def _make_roles(connection: Connection, passwords: Mapping[str, str | None]) -> None:
    for role, password in passwords.items():
        known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
        if known is None:
            connection.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                    sql.Identifier(role), sql.Literal(password)
                )
            )


def _url(name: str, text: str, role: str | None = None) -> URL:
    """A setting's URL, which must be the role's."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise SettingInvalid(f"{name} must be postgresql+psycopg://user:password@host/database.") from None
    if role is not None and url.username != role:
        raise SettingInvalid(f"{name} must name the role {role}, it names {url.username}.")
    return url
