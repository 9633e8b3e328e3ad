"""Airflow is imported in the tests' own process, with a home of its own and its warnings let be; pages to look at."""

import importlib
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from flask import Flask
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.settings import Settings
from gridline.storage.objects import Store
from tests.gridline.capacity.yard import Yard
from tests.plugins.aws import DEFINITION, QUEUE, REGION, Aws, World, running_aws
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


@pytest.fixture(scope="session")
def aws() -> Iterator[Aws]:
    """AWS Batch on loopback; a test that asks for ``aws_world`` finds no job there."""
    with running_aws() as one:
        yield one


@pytest.fixture
def aws_world(airflow_home: Path, aws: Aws, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> World:
    """A pool of one GPU whose jobs run on AWS Batch, reached as the environment says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import airflow.providers.amazon.aws.hooks.batch_client
        import airflow.providers.amazon.aws.links.batch  # noqa: F401  # what our modules import, without its warnings
    from airflow.sdk.bases import operator

    monkeypatch.setattr(operator.ExecutorSafeguard, "test_mode", True)
    for name, value in {
        "AWS_ENDPOINT_URL": aws.endpoint,
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-west-2",
    }.items():
        monkeypatch.setenv(name, value)
    place = {"job_queue": QUEUE, "job_definition": DEFINITION, "region": REGION}
    pool = {"name": "local", "gpus": 1, "models": ["*"], "datacenter": True, "aws_batch": place}
    monkeypatch.setattr("gridline.capacity.remote.settings", lambda: Settings(pools=json.dumps([pool])))
    names = ("aws_batch", "aws_triggers", "operators", "jobs", "triggers")
    rooms = {name: importlib.import_module(f"gridline_airflow.{name}") for name in names}
    monkeypatch.setattr(rooms["aws_triggers"], "POLL_SECONDS", 0.05)
    # Airflow's own goes to the task's log on another way than a test sees.
    monkeypatch.setattr(rooms["operators"].InferPartition, "log", logging.getLogger("task"))
    aws.forget()
    return World(
        yard, aws, SimpleNamespace(exceptions=importlib.import_module("airflow.sdk.exceptions"), **rooms)
    )


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
