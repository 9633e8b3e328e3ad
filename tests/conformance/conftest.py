"""Where the suite runs: against a stack of its own, one that runs already, or any OpenAI-compatible service.

Read from the environment, since a command line shows in process lists:
``CONFORMANCE_BASE_URL`` with ``CONFORMANCE_TOKEN`` (and ``CONFORMANCE_OTHER_TOKEN`` of a second account) name a service;
``CONFORMANCE_STACK=running`` means the stack that ``make up`` started; ``CONFORMANCE_PROFILE`` names the dialect that
a stack of the suite's own speaks, if it is not the default. ``CONFORMANCE_CHAT`` and
``CONFORMANCE_EMBEDDING`` name models; without them the service's list of models tells.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from gridline.settings import Settings, inherited_environment, read_settings
from tests.conformance.batch_service import CHAT_ENDPOINT, EMBEDDINGS_ENDPOINT, Secret, Service
from tests.conformance.dialect import spoken_at
from tests.conformance.page import Results
from tests.conformance.walks import CLIENTS, Client, lay_out, report, start
from tests.stack import Stack, running_stack

HERE = Path(__file__).parent
RESULTS = Results()
CUSTOMERS: list[Service] = []
"""Every customer that the suite made, for tidying up after them."""
RAISE_LIMITS = (
    "UPDATE accounts SET open_batches_max = 50, requests_per_minute_max = 60000 WHERE id = %s RETURNING id"
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of the suite: it is long, and needs a whole service."""
    for item in items:
        if HERE in item.path.parents:
            for mark in ("conformance", "stack", "deep"):
                item.add_marker(mark)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))  # the first test waits for the stack


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what came of each test."""
    if report.nodeid.startswith("tests/conformance/") and (
        report.when == "call" or report.outcome != "passed"
    ):
        RESULTS.add(report.nodeid.rpartition("::")[2], report.outcome)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the page of the suite, if that was asked for."""
    if config.getoption("--write-conformance"):
        terminalreporter.write_line(RESULTS.write(given("PROFILE") or Settings().profile))


def given(name: str) -> str:
    """A setting of the suite, "" when it is not given."""
    return Secret(os.environ.get(f"CONFORMANCE_{name}", ""))


def models(base_url: str, token: str) -> dict[str, Any]:
    """The models to name, and their sizes, as far as the service's list tells them."""
    listed = _listed(base_url, token)
    known = {one["id"]: _details(one) for one in listed}
    chat, embedding = (
        given(name) or next((id_ for id_, one in known.items() if endpoint in one.get("endpoints", ())), "")
        for name, endpoint in (("CHAT", CHAT_ENDPOINT), ("EMBEDDING", EMBEDDINGS_ENDPOINT))
    )
    if not (chat and embedding):
        pytest.fail(
            "no model for both endpoints is listed: qualify them, or name CONFORMANCE_CHAT, CONFORMANCE_EMBEDDING"
        )
    sizes = known.get(embedding, {})
    return {
        "chat": chat,
        "embedding": embedding,
        "chat_context": known.get(chat, {}).get("context_tokens", 8192),
        "dimensions": sizes.get("dimensions", 0),
        "embedding_context": sizes.get("context_tokens", 0),
    }


def _listed(base_url: str, token: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{base_url}/models", headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return list(answer.raise_for_status().json()["data"])


def _details(model: dict[str, Any]) -> dict[str, Any]:
    """What a service says of a model beside OpenAI's own keys, in an object with its endpoints."""
    return next((one for one in model.values() if isinstance(one, dict) and "endpoints" in one), {})


@pytest.fixture(scope="session")
def operator(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The operator's side of the service: fault hooks, the books, new accounts. Only a stack of ours has one."""
    if given("BASE_URL"):
        pytest.skip("needs the operator's side of the service")
    if given("STACK") == "running":
        environment = inherited_environment()
        with ExitStack() as held:
            yield Stack(environment, read_settings(environment), held)
        return
    if given("PROFILE"):
        with running_stack(added={"GRIDLINE_PROFILE": given("PROFILE")}) as one:
            yield one
        return
    yield request.getfixturevalue("stack")


def joined(base_url: str, token: str) -> Service:
    """A customer of the service."""
    one = Service(base_url, token, dialect=spoken_at(base_url), **models(base_url, token))
    CUSTOMERS.append(one)
    return one


@pytest.fixture(scope="session")
def fresh(operator: Stack) -> Callable[[], Service]:
    """Makes new accounts with the limits of every new account, ten credits and a token."""

    def make() -> Service:
        one = operator.customer(f"conformance-{secrets.token_hex(4)}")
        return joined(str(one.openai.base_url).rstrip("/"), Secret(one.token))

    return make


@pytest.fixture(scope="session")
def roomy(operator: Stack) -> Callable[[], Service]:
    """Makes new accounts with limits that the suite does not meet."""

    def make() -> Service:
        one = operator.customer(f"conformance-{secrets.token_hex(4)}")
        operator.rows(RAISE_LIMITS, one.id)
        return joined(str(one.openai.base_url).rstrip("/"), Secret(one.token))

    return make


@pytest.fixture(scope="session")
def service(request: pytest.FixtureRequest) -> Service:
    """The customer that the suite is."""
    if given("BASE_URL"):
        return joined(given("BASE_URL"), given("TOKEN"))
    make: Callable[[], Service] = request.getfixturevalue("roomy")
    return make()


@pytest.fixture(scope="session")
def other(request: pytest.FixtureRequest) -> Service:
    """A customer of another account."""
    if given("BASE_URL") and not given("OTHER_TOKEN"):
        pytest.skip("needs a second account: CONFORMANCE_OTHER_TOKEN")
    if given("BASE_URL"):
        return joined(given("BASE_URL"), given("OTHER_TOKEN"))
    make: Callable[[], Service] = request.getfixturevalue("roomy")
    return make()


@pytest.fixture(autouse=True, scope="session")
def closed() -> Iterator[None]:
    """Close every customer's connections at the end."""
    yield
    for one in CUSTOMERS:
        one.http.close()


@pytest.fixture(autouse=True, scope="module")
def tidied() -> Iterator[None]:
    """Leave no upload of a module behind: an account has room for so many files."""
    yield
    for one in CUSTOMERS:
        one.tidy()


@pytest.fixture(scope="session")
def walks(
    request: pytest.FixtureRequest, service: Service, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What each SDK saw on its walk, by the SDK's name; all walk at once, each in an account of its own if it can."""
    folder = tmp_path_factory.mktemp("walk")
    lay_out(folder, service)
    children = {}
    for client in CLIENTS:
        customer, crowded = service, Secret("")
        if not given("BASE_URL"):
            roomy, fresh = (request.getfixturevalue(name) for name in ("roomy", "fresh"))
            customer, crowded = roomy(), fresh().token
        children[client.name] = start(client, folder, customer, crowded)
    return {name: report(child, seconds=480) for name, child in children.items()}


@pytest.fixture(params=CLIENTS, ids=lambda one: one.name)
def client(request: pytest.FixtureRequest) -> Client:
    """One of the SDKs."""
    one: Client = request.param
    return one


@pytest.fixture
def walk(client: Client, walks: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the SDK saw on its walk, scene by scene."""
    return walks[client.name]
