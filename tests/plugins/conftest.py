"""Airflow is imported in the tests' own process, with a home of its own and its warnings let be."""

import os
import tempfile
import warnings

import pytest


@pytest.fixture(scope="session")
def airflow_home() -> str:
    """A home for Airflow, set before anything imports it: it takes its configuration then."""
    home = tempfile.mkdtemp(prefix="gridline-airflow-")
    os.environ.setdefault("AIRFLOW_HOME", home)
    os.environ.setdefault("_AIRFLOW__AS_LIBRARY", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import airflow.sdk
        import airflow.triggers.base  # noqa: F401  # what our modules import
    return home
