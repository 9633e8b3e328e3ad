"""Brings the domain database to the newest schema, as its owner. Safe to run at any time, and twice."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

_LOCK = 0x6772_6964  # two migrations at once wait for each other


def migrate(connection: Connection) -> None:
    """Upgrade to the newest revision in the connection's transaction."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
