"""The served document, tried by schemathesis: what it promises is taken, what it forbids is refused, nothing breaks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from schemathesis import Config, GenerationMode

from api.app import create_app
from gridline import limits
from gridline.settings import read_settings
from tests.api import described
from tests.api.conftest import LINES, Customer, live
from tests.api.people import fresh_email
from tests.identity_provider import CLIENT_ID, identity_provider

CALLS = sorted(
    operation["operationId"]
    for item in described.described().document["paths"].values()
    for method, operation in item.items()
    if method != "servers"
)
MORE_THAN_A_SCHEMA: dict[str, Any] = {
    # That lines are JSON, that an address is one and is public, that words are not blank, how long NFKC makes a password.
    "file": LINES,
    "email": "mallory@example.com",
    "password": "correct horse battery staple",
    "url": "https://93.184.215.14/hooks",
    "text": "Why?",
}
"""Good values for what no schema of a value can say."""
REFUSED = ["400", "401", "403", "404", "409", "413", "415", "416"]
CHECKS = {"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}}


@pytest.fixture
def session(mallory: Customer, monkeypatch: pytest.MonkeyPatch) -> Iterator[requests.Session]:
    """A client of the customer that schemathesis can use; it also tries wrong tokens, which are a 401 all the while."""
    monkeypatch.setattr(limits, "WRONG_TOKENS_PER_MINUTE_MAX", 1_000_000)
    monkeypatch.setattr(limits, "ESTIMATES_PER_MINUTE_MAX", 1_000_000)
    with requests.Session() as one:
        one.trust_env = False
        one.headers["Authorization"] = f"Bearer {mallory.token}"
        yield one


def attempt(call: str, address: str, session: requests.Session, examples: int) -> None:
    """Send good and bad requests to a call, and hold every answer to the document."""
    schema: Any = schemathesis.openapi.from_url(f"{address}/openapi.json", config=Config.from_dict(CHECKS))
    operation = schema.find_operation_by_id(call)
    apply = settings(
        max_examples=examples, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip

    @seed(20_260_105)
    @apply
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def send_good(case: Any) -> None:
        assume(no_whole_floats(case.body))
        if isinstance(case.body, dict):
            case.body.update({name: good for name, good in MORE_THAN_A_SCHEMA.items() if name in case.body})
        if call in {"readStatement", "readUsage"}:
            # That it is not after the last day, nor a year before it, is more than a schema can say of one parameter.
            case.query.pop("from", None)
        case.call_and_validate(session=session)

    @seed(20_260_105)
    @apply
    @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def send_bad(case: Any) -> None:
        assume(not becomes_a_file(case.body))
        assume(arrives(case.query))
        case.call_and_validate(session=session)

    send_good()
    if any((operation.path_parameters, operation.query, operation.headers, operation.body)):
        send_bad()


def no_whole_floats(value: Any) -> bool:
    """JSON Schema takes 3.0 for an integer; our readers, as OpenAI's, do not."""
    if isinstance(value, dict | list):
        return all(map(no_whole_floats, value.values() if isinstance(value, dict) else value))
    return not (isinstance(value, float) and value.is_integer())


def becomes_a_file(body: Any) -> bool:
    """In a form all is text: null or a number in the place of a file is sent as a good file that says so."""
    return isinstance(body, dict) and "file" in body and not isinstance(body["file"], str | bytes)


def arrives(query: dict[str, Any] | None) -> bool:
    """A query cannot say null, nor an empty list or object: a parameter of such a value is never sent."""
    sent = requests.Request("GET", "http://localhost/", params=query).prepare().url or ""
    return set(query or {}) <= {name for name, _ in parse_qsl(urlsplit(sent).query, keep_blank_values=True)}


@pytest.mark.parametrize("nothing", [None, [], {}])
def test_a_parameter_that_is_not_sent_proves_nothing(nothing: Any) -> None:
    """Where a forbidden parameter vanishes from the address, the answer may be good; what is sent is held to."""
    assert not arrives({"to": "2026-01-05", "one": nothing})
    assert arrives({"to": "2026-01-05", "one": "", "two": ["a", "b"]})


@pytest.mark.programs
@pytest.mark.parametrize("call", CALLS)
def test_a_call_holds_what_its_description_says(
    call: str, address: str, session: requests.Session, qualified: None
) -> None:
    """No 5xx, no status, type, header or key that is not described; bad requests are refused, good ones are not."""
    attempt(call, address, session, examples=5)


@pytest.mark.programs
def test_the_call_of_an_identity_provider_holds_it_too(
    session: requests.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is served only where a provider is believed is held to the document that is served there."""
    monkeypatch.setattr(limits, "SIGN_INS_OF_ADDRESS_PER_MINUTE_MAX", 1_000_000)
    with identity_provider() as provider:
        believing = replace(read_settings({}), oidc_issuer=provider.url, oidc_client_id=CLIENT_ID)
        provider.person["email"] = fresh_email("mallory")
        for name, good in {"id_token": provider.id_token("n"), "nonce": "n"}.items():
            monkeypatch.setitem(MORE_THAN_A_SCHEMA, name, good)
        with live(create_app(config=believing)) as address:
            attempt("signInWithIdentity", address, session, examples=20)


@pytest.mark.conformance
@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_holds_it_for_long(
    call: str, address: str, session: requests.Session, qualified: None
) -> None:
    """The same with many more requests."""
    attempt(call, address, session, examples=200)
