"""A customer who knows nothing but the dashboard's address, in a real Chromium on the running stack."""

import json
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from tests.dashboard.test_access_browser import press, sign_up
from tests.dashboard.test_browser import Browser
from tests.stack import Stack, chat_line, eventually, jsonl

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(600)]

EMAIL = "ann@pages.example"
QUESTIONS = ("What is the capital of France?", "Write one sentence about the sea.")
HEADINGS = {
    "/": "Overview",
    "/batches": "Batches",
    "/new_batch": "New batch",
    "/files": "Files",
    "/fine_tuned": "Fine-tuned models",
    "/usage": "Usage",
    "/billing": "Billing",
    "/pricing": "Pricing",
    "/account": "Account",
    "/tokens": "API tokens",
    "/webhooks": "Webhooks",
    "/contact": "Write to the operator",
}


@pytest.fixture
def browser(stack: Stack, tmp_path: Path) -> Iterator[Browser]:
    """A Chromium at the stack's dashboard."""
    one = Browser(stack.config.public_dashboard_url, tmp_path)
    yield one
    one.driver.quit()


def shown_batch(browser: Browser) -> str:
    """The id of the batch whose page is open."""

    def look() -> str | None:
        _, _, found = browser.driver.current_url.partition("/batch?id=")
        return found or None

    return eventually(look, seconds=30, what="the batch's page opens")


def test_from_signing_up_to_the_first_result(stack: Stack, browser: Browser, tmp_path: Path) -> None:
    """Signs up, gets credit, makes a token, uploads a file, sees what it costs, creates, watches, downloads, reads the bill."""
    sign_up(browser, EMAIL)
    browser.one("[data-testid='stTextInput'] input").send_keys("laptop")
    press(browser, "Make a token")
    token = browser.one(".st-key-new-token code").text
    press(browser, "I have kept it")
    stack.gridline("ops", "grant", EMAIL, "2", "--why", "Welcome", "--key", "welcome")

    source = tmp_path / "questions.jsonl"
    source.write_bytes(jsonl([chat_line(number, text) for number, text in enumerate(QUESTIONS)]))
    browser.open("/new_batch")
    browser.one("#gl-file").send_keys(str(source))
    press(browser, "Upload and check")
    browser.reads("questions.jsonl")
    press(browser, "Create batch")
    batch_id = shown_batch(browser)
    browser.reads("Completed", 180)

    # No reload in between: the page followed the batch by itself.
    client = openai.OpenAI(base_url=f"{stack.config.public_api_url}/openai/v1", api_key=token, max_retries=0)
    with client:
        batch = client.batches.retrieve(batch_id)
    assert batch.status == "completed"
    browser.one(f'a[href$="/download/{batch_id}/output"]').click()
    got = tmp_path / f"{batch_id}_output.jsonl"
    eventually(got.is_file, seconds=30, what="the results are on the disk")
    lines = [json.loads(line) for line in got.read_text().splitlines()]
    assert [line["custom_id"] for line in lines] == ["line-0", "line-1"]
    assert "Paris" in lines[0]["response"]["body"]["choices"][0]["message"]["content"]
    charged = batch.model_extra["gridline"]["cost"] if batch.model_extra else None
    assert charged is not None
    browser.open("/billing")
    browser.reads(charged.rstrip("0"))


@pytest.mark.deep
def test_every_page_opens_on_the_running_stack(stack: Stack, browser: Browser) -> None:
    """Each page of the sidebar comes from the real API with its heading and no word of a problem, also on a phone."""
    customer = stack.customer("pages")
    customer.finished(customer.create([chat_line(0, QUESTIONS[0])]).id)
    browser.open("/")
    browser.sign_in(customer.token)
    for width in (1280, 390):
        browser.driver.set_window_size(width, 800)
        for path, heading in HEADINGS.items():
            browser.open(path)
            browser.reads(heading)
            body = browser.one("[data-testid='stMain']").text
            assert heading in body
            assert "could not" not in body.lower(), body
            assert not browser.driver.find_elements("css selector", "[data-testid='stException']")


@pytest.mark.deep
def test_a_customer_sees_nothing_of_another_s(stack: Stack, browser: Browser) -> None:
    """With the link to another's batch there is no such batch, and no page holds a word of it."""
    owner, other = stack.customer("pages-owner"), stack.customer("pages-other")
    batch_id = owner.create([chat_line(0, QUESTIONS[0])]).id
    browser.open(f"/batch?id={batch_id}")
    browser.sign_in(other.token)
    browser.reads("There is no such batch")
    for path, heading in HEADINGS.items():
        browser.open(path)
        browser.reads(heading)
        assert batch_id not in browser.driver.page_source
        assert "pages-owner" not in browser.driver.page_source
    owner.finished(batch_id)
