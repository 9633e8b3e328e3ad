"""GPU jobs and the engine keeper. They know no money, no database and no Airflow."""
