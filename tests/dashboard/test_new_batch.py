"""From a file to a batch in the dashboard, and the page of files: pages and routes on the live API."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest  # noqa: TID253 - the dashboard is Streamlit's room, and so are its tests

from dashboard import sessions, transfers
from dashboard.routes import ROUTES
from gridline.client import Batch, Client, ClientError
from tests.api.conftest import (
    LINES,
    Customer,
    address,
    ann,
    bob,
    database,
    pepper,
    prepared,
    qualified,
    shared_database,
    windows,
)
from tests.dashboard.conftest import SignIn, Visit, text_of

__all__ = [
    "address", "ann", "bob", "database", "pepper", "prepared", "qualified", "shared_database", "windows",
]  # fmt: skip
HOME = "http://dashboard.test"

pytestmark = pytest.mark.programs


@dataclass
class Browser:
    """Routes and pages with one cookie."""

    routes: TestClient
    pages: Visit
    client: Client

    def upload(self, content: bytes, name: str = "questions.jsonl") -> str:
        """Post the form; where it leads."""
        answer = self.routes.post(
            "/files/in", data={"purpose": "batch"}, files={"file": (name, content)}, headers={"origin": HOME}
        )
        assert answer.status_code == 303
        return answer.headers["location"]

    def stored(self, content: bytes = LINES) -> str:
        """Upload; the file's id."""
        return self.upload(content).removeprefix("/new_batch?file=")


@pytest.fixture
def browser_of(sign_in: SignIn) -> Iterator[Callable[[Customer, str], Browser]]:
    """Signs a customer in."""
    app = Starlette(routes=[*transfers.ROUTES, *ROUTES])
    with ExitStack() as stack:

        def make(customer: Customer, address: str) -> Browser:
            pages = sign_in(address, customer.token)
            client = TestClient(
                app, base_url=HOME, cookies={sessions.COOKIE: pages.cookie}, follow_redirects=False
            )
            session = sessions.SESSIONS.find(pages.cookie)
            assert session is not None
            return Browser(stack.enter_context(client), pages, session.client)

        yield make


@pytest.fixture
def browser(
    browser_of: Callable[[Customer, str], Browser], ann: Customer, address: str, prepared: None
) -> Browser:
    """Ann's browser."""
    return browser_of(ann, address)


def button(page: AppTest, label: str) -> Any:
    """The page's button with this label."""
    return next(one for one in page.button if one.label == label)


def labels(page: AppTest) -> list[str]:
    """The labels of a page's buttons."""
    return [one.label for one in page.button]


def test_a_file_arrives_byte_for_byte(browser: Browser) -> None:
    """What the form sends is stored as it is, and the next page is that of a new batch with it."""
    target = browser.upload(LINES)
    file_id = target.removeprefix("/new_batch?file=")
    with browser.client.download(file_id) as got:
        assert b"".join(got.chunks) == LINES
    assert browser.routes.get(f"/download/file/{file_id}").content == LINES


def test_from_a_file_to_a_batch(browser: Browser, ann: Customer) -> None:
    """The page shows lines, the most it can cost and what stays, and makes one batch with its description."""
    file_id = browser.stored()
    page = browser.pages.run("new_batch", file=file_id)
    numbers = {one.label: one.value for one in page.metric}
    assert numbers, text_of(page)
    assert numbers["Lines"] == "2", text_of(page)
    assert set(numbers) == {"Lines", "At most (credits)", "Likely (credits)", "Available after the hold"}
    page.text_input(key="description").set_value("Night run")
    page.radio(key="window").set_value("72h").run()
    button(page, "Create batch").click().run()
    (batch,) = browser.client.batches().data
    assert (batch.input_file_id, batch.completion_window) == (file_id, "72h")
    assert batch.metadata == {"description": "Night run"}


def test_an_answer_that_is_lost_makes_no_second_batch(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button pressed again after a time-out finds the batch that the first press made."""
    real, keys = Client.create_batch, []

    def lossy(self: Client, file_id: str, **more: Any) -> Batch:
        keys.append(more["key"])
        made = real(self, file_id, **more)
        if len(keys) == 1:
            raise ClientError("The API gave no answer for 10 seconds. Try again.", code="timeout")
        return made

    monkeypatch.setattr(Client, "create_batch", lossy)
    page = browser.pages.run("new_batch", file=browser.stored())
    button(page, "Create batch").click().run()
    assert "gave no answer" in text_of(page)
    button(page, "Create batch").click().run()
    assert keys[0] == keys[1]
    assert len(browser.client.batches().data) == 1


def test_wrong_lines_are_shown_by_number(browser: Browser) -> None:
    """A file with a wrong line shows it with its number, costs nothing, and offers no batch."""
    file_id = browser.stored(
        LINES + b'{"custom_id": "x", "method": "POST", "url": "/v1/nothing", "body": {}}\n'
    )
    page = browser.pages.run("new_batch", file=file_id)
    table = page.dataframe[0].value
    assert list(table["Line"]) == [3]
    assert not page.metric
    assert "Create batch" not in labels(page)


def test_a_refused_upload_says_why_once(browser: Browser) -> None:
    """What the API did not take is told on the page that follows, with the request's id, and not again."""
    assert browser.upload(b"", "empty.jsonl") == "/new_batch"
    assert "Request id: req_" in text_of(browser.pages.run("new_batch"))
    assert "Request id" not in text_of(browser.pages.run("new_batch"))


def test_too_little_credit_is_said_before(browser: Browser) -> None:
    """A batch that the credit does not cover cannot be sent as 24h, and as 72h says that it waits."""
    file_id = browser.stored()
    page = browser.pages.run("new_batch", file=file_id)
    page.session_state[f"estimate {file_id}"] = page.session_state[f"estimate {file_id}"] | {"covered": False}
    page.run()
    assert button(page, "Create batch").disabled
    page.radio(key="window").set_value("72h").run()
    assert "will wait for credit" in text_of(page)
    assert not button(page, "Create batch").disabled


def test_files_are_listed_and_deleted(browser: Browser) -> None:
    """Each file shows when it goes by itself; one that a batch needs stays, and the page says so."""
    kept, gone = browser.stored(), browser.stored()
    browser.client.create_batch(kept, endpoint="/v1/chat/completions", window="24h")
    page = browser.pages.run("files")
    assert "questions.jsonl" in text_of(page)
    page.button(key=f"delete-{gone}").click().run()
    page.button(key=f"delete-{kept}").click().run()
    assert "It could not be deleted" in text_of(page)
    assert [one.id for one in browser.client.files().data] == [kept]


def test_a_file_of_another_account_is_missing(
    browser_of: Callable[[Customer, str], Browser], browser: Browser, bob: Customer, address: str
) -> None:
    """Bob sees neither Ann's file on any page nor its bytes."""
    file_id = browser.stored()
    foreign = browser_of(bob, address)
    assert file_id not in text_of(foreign.pages.run("files"))
    assert "cannot be used" in text_of(foreign.pages.run("new_batch", file=file_id))
    assert foreign.routes.get(f"/download/file/{file_id}").status_code == 404


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_forms_of_other_sites_store_nothing(browser: Browser, origin: str) -> None:
    """A page elsewhere cannot upload as the visitor."""
    answer = browser.routes.post("/files/in", files={"file": ("a.jsonl", LINES)}, headers={"origin": origin})
    assert answer.status_code == 403
    assert not browser.client.files().data
