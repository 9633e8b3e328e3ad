"""The domain database: engine, one transaction a unit of work, migrations."""
