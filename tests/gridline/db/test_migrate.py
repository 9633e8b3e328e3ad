"""The schema that migrations make is the schema that the tables describe."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError

from gridline.db.every_table import METADATA
from gridline.db.migrate import migrate


def test_tables_and_migrations_agree(owner: Engine) -> None:
    """No table, column, index or key differs between the code and the migrated database."""
    with owner.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_migrating_twice_changes_nothing(owner: Engine) -> None:
    """A second migrate finds the newest schema and ends well."""
    with owner.begin() as connection:
        migrate(connection)


@pytest.mark.parametrize(
    "table", ["audit", "batch_events", "entries", "holds", "resolutions", "transactions"]
)
@pytest.mark.parametrize("verb", ["UPDATE {} SET account_id = account_id", "DELETE FROM {}", "TRUNCATE {}"])
def test_app_cannot_change_history(database: Engine, table: str, verb: str) -> None:
    """The app role may add to append-only tables and never change or remove a row."""
    if table == "entries":
        verb = verb.replace("account_id = account_id", "amount_nanos = 1")
    with pytest.raises(ProgrammingError, match="permission denied"), database.begin() as connection:
        connection.execute(text(verb.format(table)))


def test_who_only_reads_sees_no_secret_of_webhooks(owner: Engine) -> None:
    """The reading role sees what a webhook is, never what it signs with; the app can change no message's words."""
    asked = text("SELECT has_column_privilege(:role, :table, :column, :right)")
    with owner.connect() as connection:

        def may(role: str, table: str, column: str, right: str) -> object:
            return connection.scalar(asked, {"role": role, "table": table, "column": column, "right": right})

        assert not may("gridline_read", "webhooks", "secret", "SELECT")
        assert not may("gridline_read", "webhooks", "old_secret", "SELECT")
        assert may("gridline_read", "webhooks", "url", "SELECT")
        assert not may("gridline_app", "messages", "text", "UPDATE")
        assert may("gridline_app", "messages", "mailed_at", "UPDATE")
