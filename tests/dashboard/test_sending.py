"""A file from a real browser through the dashboard to the live API, and the batch made of it."""

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from tests.api.conftest import (
    LINES,
    Customer,
    address,
    ann,
    database,
    pepper,
    prepared,
    qualified,
    shared_database,
    windows,
)
from tests.dashboard.test_browser import Browser, dashboard, eventually

__all__ = ["address", "ann", "database", "pepper", "prepared", "qualified", "shared_database", "windows"]

pytestmark = pytest.mark.browser


def test_a_file_becomes_a_batch(address: str, ann: Customer, prepared: None, tmp_path: Path) -> None:
    """Choose a file, see what it costs, create: the batch's page opens, and the file can be had back as it was."""
    source = tmp_path / "questions.jsonl"
    source.write_bytes(LINES)
    with dashboard(address) as url:
        browser = Browser(url, tmp_path)
        try:
            browser.open("/new_batch")
            browser.sign_in(ann.token)
            browser.reads("Upload a file")
            browser.one("#gl-file").send_keys(str(source))
            browser.one('form[action="/files/in"] button').click()
            browser.reads("Available after the hold")
            browser.reads("questions.jsonl")
            eventually(lambda: _press(browser, "Create batch"))
            browser.reads("Validating")
            (batch,) = ann.sdk.batches.list().data
            assert batch.id in browser.driver.current_url
            browser.open("/files")
            browser.one(f'a[href$="/download/file/{batch.input_file_id}"]').click()
            saved = tmp_path / f"{batch.input_file_id}.jsonl"
            eventually(saved.is_file)
            assert saved.read_bytes() == LINES
        finally:
            browser.driver.quit()


def _press(browser: Browser, label: str) -> bool:
    """Press the button with this label once it is there."""
    for one in browser.driver.find_elements(By.CSS_SELECTOR, "button"):
        if label in one.text:
            one.click()
            return True
    return False
