"""Errors of the keeper's dealings with Airflow."""

from gridline.errors import Unavailable


class AirflowAway(Unavailable):
    """Raised when Airflow cannot be reached, answers 5xx, or does not know the DAG yet: asking later helps."""


class RunNotFound(Unavailable):
    """Raised when a run that should exist does not (deleted, or its database was replaced)."""
