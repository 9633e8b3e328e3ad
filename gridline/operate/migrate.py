"""Brings the domain database to the newest schema as its owner, and seeds what the settings say."""

from sqlalchemy import create_engine

from gridline.capacity import pools
from gridline.db.migrate import migrate
from gridline.db.work import unit_of_work
from gridline.settings import settings


def main() -> None:
    """Migrate, then seed the pools of ``GRIDLINE_POOLS``. Safe at any time, and twice."""
    engine = create_engine(settings().owner_database_url)
    try:
        with engine.begin() as connection:
            migrate(connection)
    finally:
        engine.dispose()
    with unit_of_work() as work:
        pools.seed(work, settings().pools)


if __name__ == "__main__":
    main()
