"""Every page against axe-core's rules in a real Chromium: what keeps somebody from using it is not there."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import fake_api, scripted
from tests.dashboard.test_access_browser import fill, press
from tests.dashboard.test_browser import Browser, dashboard

pytestmark = [pytest.mark.browser, pytest.mark.deep]

RULES = Path(__file__).parent / "node" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
PAGES = {
    "/": "What went wrong last",
    "/batches": "Updated",
    "/batch?id=" + "batch_dHalf".ljust(30, "0"): "Where its time went",
    "/batch?id=" + "batch_gMixed".ljust(30, "0"): "Failed lines",
    "/batch?id=" + "batch_hBad".ljust(30, "0"): "Problems in the input file",
    "/new_batch": "Upload a file",
    "/files": "uploaded",
    "/fine_tuned": "No fine-tuned model yet",
    "/usage": "By model",
    "/billing": "Credits after",
    "/account": "Limits",
    "/webhooks": "Fails, is tried again",
    "/contact": "About the batch",
    "/pricing": "Limits of a new account",
}
WIDTHS = (1280, 390)
SETTLED_SECONDS = 20.0


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A browser on the dashboard, before anybody has signed in."""
    with fake_api.running() as fake, dashboard(fake.url) as url:
        one = Browser(url, tmp_path)
        try:
            yield one
        finally:
            one.driver.quit()


def faults(browser: Browser) -> dict[str, list[str]]:
    """Serious faults of the page as it stands: the rule and the elements that break it."""
    browser.driver.execute_script(RULES.read_text())
    found: dict[str, Any] = browser.driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done)"
    )
    return {
        one["id"]: [f"{node['html'][:300]}: {node['failureSummary']}" for node in one["nodes"]]
        for one in found["violations"]
        if one["impact"] in SERIOUS
    }


def settled(browser: Browser) -> None:
    """Wait until the page stands still: nothing fades in any more, which would change its colours."""
    until, before = time.monotonic() + SETTLED_SECONDS, ""
    while time.monotonic() < until:
        now = browser.driver.execute_script(
            "return document.querySelectorAll('[data-stale=true]').length + document.body.innerText"
        )
        if now == before and now.startswith("0"):
            return
        before = now
        time.sleep(0.4)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_has_a_serious_fault(browser: Browser, width: int) -> None:
    """On a wide and on a narrow screen, the way in and every page keep axe's serious and critical rules."""
    browser.driver.set_window_size(width, 900)
    browser.open("/")
    browser.reads("Sign in to your batches")
    settled(browser)
    found = {"sign in": faults(browser)}
    browser.sign_in(scripted.ALICE)
    browser.reads("Available credits")
    for path, text in PAGES.items():
        browser.open(path)
        browser.reads(text)
        settled(browser)
        found[path] = faults(browser)
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_of_a_user_has_a_serious_fault(browser: Browser, width: int) -> None:
    """Signing up, a new token and the list of tokens keep them too."""
    browser.driver.set_window_size(width, 900)
    browser.open("/sign_up?next=%2Ftokens&sign_in=passwords_differ")
    browser.one("#gl-again")
    settled(browser)
    found = {"sign up": faults(browser)}
    fill(browser, email="ann@example.com", password="correct horse battery", again="correct horse battery")
    browser.reads("No tokens yet")
    settled(browser)
    found["no tokens"] = faults(browser)
    browser.one("[data-testid='stTextInput'] input").send_keys("nightly runs")
    press(browser, "Make a token")
    browser.reads("shown this once")
    settled(browser)
    found["new token"] = faults(browser)
    press(browser, "I have kept it")
    settled(browser)
    found["tokens"] = faults(browser)
    assert {path: wrong for path, wrong in found.items() if wrong} == {}
