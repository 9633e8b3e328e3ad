"""The reference's page in a real Chromium: it shows the calls, tries one with a token, and asks nobody else."""

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from tests.api import described
from tests.api.conftest import Customer
from tests.dashboard.test_browser import Browser, eventually

pytestmark = pytest.mark.browser


def test_the_page_shows_every_call_and_tries_one(
    ann: Customer, qualified: None, address: str, tmp_path: Path
) -> None:
    """All calls are listed, a token opens one, the console is silent, only this server is asked, nothing is kept."""
    browser = Browser(address, tmp_path)
    driver = browser.driver
    try:
        browser.open("/docs")
        browser.reads("Upload a file")
        shown = {one.get_attribute("id") for one in driver.find_elements(By.CSS_SELECTOR, ".opblock")}
        paths = described.described().document["paths"].values()
        calls = [one for item in paths for method, one in item.items() if method != "servers"]
        assert shown == {f"operations-{one['tags'][0]}-{one['operationId']}" for one in calls}
        browser.one(".authorize").click()
        browser.one(".auth-container input").send_keys(ann.token)
        browser.one(".auth-btn-wrapper .authorize").click()
        browser.one(".auth-btn-wrapper .btn-done").click()
        browser.one("#operations-Models-listModels .opblock-summary-control").click()
        browser.one("#operations-Models-listModels .try-out__btn").click()
        browser.one("#operations-Models-listModels .execute").click()
        eventually(lambda: "smollm2-135m-instruct" in browser.one(".live-responses-table").text)
        assert driver.get_log("browser") == []  # type: ignore[no-untyped-call]
        assert {url for url in browser.asked_for() if not url.startswith(f"{address}/")} == set()
        assert driver.execute_script("return localStorage.length + sessionStorage.length") == 0
        assert driver.get_cookies() == []
        width = driver.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert width <= 0
    finally:
        driver.quit()
