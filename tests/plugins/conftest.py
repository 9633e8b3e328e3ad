"""Airflow is imported in the tests' own process, with a home of its own and its warnings let be; pages to look at."""

import warnings
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.storage.objects import Store
from tests.gridline.capacity.yard import Yard
from tests.plugins.pages_app import SIGN_IN, Browser, SignIn, make_app


@pytest.fixture(scope="session")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home for Airflow, told to it while it is imported: nothing of it stays for programs that other tests start."""
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("AIRFLOW_HOME", str(home))
        patch.setenv("_AIRFLOW__AS_LIBRARY", "1")
        warnings.simplefilter("ignore")
        import airflow.sdk
        import airflow.triggers.base  # noqa: F401  # what our modules import
    return home


@pytest.fixture(scope="session")
def pages() -> Flask:
    """The operator's pages in an application, made once: its users do not change."""
    return make_app()


@pytest.fixture
def yard(database: Engine, clock: FrozenClock, store: Store) -> Yard:
    """A pool of one GPU."""
    yard = Yard(clock, store)
    yard.gpus(1)
    return yard


@pytest.fixture
def signed_in(pages: Flask, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> SignIn:
    """Opens browsers."""
    from gridline_airflow.pages import guard

    monkeypatch.setattr(guard, "sign_in_page", lambda: SIGN_IN)

    def sign_in(name: str) -> Browser:
        browser = Browser(pages.test_client())
        if name:
            browser.sign_in(name)
        return browser

    return sign_in
