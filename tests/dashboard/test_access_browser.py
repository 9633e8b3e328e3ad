"""Access as a customer has it, in a real Chromium before the real API: sign up, make a token, use it, revoke it, sign out."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from sqlalchemy import Engine

from gridline.db.work import unit_of_work
from gridline.ledger import posting
from tests.conftest import free_port
from tests.dashboard.test_browser import ROOT, Browser, eventually, healthy
from tests.serving import serving

pytestmark = pytest.mark.browser

PASSWORD = "correct horse battery"


@pytest.fixture
def served(database: Engine, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """API and dashboard as processes of their own: the dashboard's address, and the API's."""
    with unit_of_work() as work:
        posting.open_platform_books(work)
    port = free_port()
    with serving(database, tmp_path / "api") as api:
        environment = {**os.environ, "GRIDLINE_API_URL": api.url, "GRIDLINE_DASHBOARD_PORT": str(port)}
        log = (tmp_path / "dashboard.log").open("wb")
        child = subprocess.Popen(
            [sys.executable, "-m", "dashboard"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        try:
            eventually(lambda: healthy(f"http://127.0.0.1:{port}"))
            yield f"http://127.0.0.1:{port}", api.url
        finally:
            child.terminate()
            assert child.wait(15) is not None
            log.close()


def fill(browser: Browser, **fields: str) -> None:
    """Fill the first form and send it, as often as the page replaces it meanwhile."""

    def sent() -> bool:
        try:
            for name, text in fields.items():
                field = browser.one(f"#gl-{name}")
                field.clear()
                field.send_keys(text)
            filled = all(
                browser.one(f"#gl-{name}").get_attribute("value") == text for name, text in fields.items()
            )
            if filled:
                browser.one(".gl-form button").click()
        except WebDriverException:
            return not browser.driver.find_elements(By.CSS_SELECTOR, "#gl-email")
        return filled

    eventually(sent)


def press(browser: Browser, label: str) -> None:
    """Click the first visible button with that label, once it holds still."""

    def pressed() -> bool:
        for one in browser.driver.find_elements(By.CSS_SELECTOR, "button"):
            try:
                if one.is_displayed() and label in one.text:
                    one.click()
                    return True
            except WebDriverException:
                return False
        return False

    eventually(pressed)


def sign_up(browser: Browser, email: str) -> None:
    """From the sign-in page to an account."""
    browser.open("/tokens")
    browser.one("a[href^='/sign_up']").click()
    browser.one("#gl-again")
    fill(browser, email=email, password=PASSWORD, again=PASSWORD)
    browser.reads("No tokens yet")


def opens(api: str, token: str) -> int:
    """What the API answers to the token."""
    return httpx.get(
        f"{api}/v1/batches", headers={"Authorization": f"Bearer {token}"}, verify=False
    ).status_code


def test_from_signing_up_to_a_token_and_out_again(served: tuple[str, str], tmp_path: Path) -> None:
    """A token made on the page opens the API until it is revoked there; another account sees nothing of it; out is out."""
    ann, bob = Browser(served[0], tmp_path), Browser(served[0], tmp_path)
    try:
        sign_up(ann, "ann@example.com")
        assert ann.driver.current_url == f"{served[0]}/tokens"
        name = ann.one("[data-testid='stTextInput'] input")
        name.send_keys("nightly runs")
        press(ann, "Make a token")
        ann.reads("shown this once")
        token = ann.one(".st-key-new-token code").text
        assert token.startswith("gl_live_")
        assert opens(served[1], token) == 200
        press(ann, "I have kept it")
        ann.reads("Make a token")
        eventually(lambda: token not in ann.driver.page_source)
        sign_up(bob, "bob@example.com")
        assert "nightly runs" not in bob.driver.find_element(By.TAG_NAME, "body").text
        press(ann, "Revoke")
        press(ann, "Revoke it now")
        ann.reads("No tokens yet")
        eventually(lambda: opens(served[1], token) == 401, 5)
        assert "gridline_session" not in ann.driver.execute_script("return document.cookie")
        ann.one(".gl-out").click()
        ann.one("#gl-email")
        ann.open("/tokens")
        fill(ann, email="ann@example.com", password="not this one at all")
        ann.reads("No user has this e-mail")
        fill(ann, email="ann@example.com", password=PASSWORD)
        ann.reads("No tokens yet")
        logged = (tmp_path / "dashboard.log").read_text()
        assert not [secret for secret in (PASSWORD, token, "gl_session_") if secret in logged]
    finally:
        ann.driver.quit()
        bob.driver.quit()
