"""The dashboard in a real Chromium: sign in, deep link, reload, follow, download, sign out."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.conftest import free_port
from tests.dashboard import fake_api, scripted
from tests.dashboard.fake_api import FakeAPI

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 30.0
DONE, HALF, BAD = (f"batch_{name}".ljust(30, "0") for name in ("fDone", "dHalf", "hBad"))


def eventually(look: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> object:
    """What ``look`` finds once it finds something."""
    until = time.monotonic() + seconds
    while True:
        found = look()
        if found or time.monotonic() > until:
            assert found, f"nothing found in {seconds} s"
            return found
        time.sleep(0.1)


def healthy(url: str) -> bool:
    """Whether the dashboard answers."""
    try:
        return httpx.get(f"{url}/_stcore/health").is_success
    except httpx.HTTPError:
        return False


@contextmanager
def dashboard(api: str) -> Iterator[str]:
    """The dashboard of this API as a process of its own; its address."""
    port = free_port()
    environment = {
        **os.environ,
        "GRIDLINE_API_URL": api,
        "GRIDLINE_DASHBOARD_PORT": str(port),
        "GRIDLINE_DASHBOARD_URL": "",
    }
    child = subprocess.Popen([sys.executable, "-m", "dashboard"], cwd=ROOT, env=environment)
    try:
        eventually(lambda: healthy(f"http://127.0.0.1:{port}"))
        yield f"http://127.0.0.1:{port}"
    finally:
        child.terminate()
        assert child.wait(15) is not None


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, FakeAPI]]:
    """The dashboard's address, and the fake API behind it."""
    with fake_api.running() as fake, dashboard(fake.url) as url:
        yield url, fake


class Browser:
    """One Chromium with its own profile."""

    def __init__(self, url: str, folder: Path) -> None:
        options = webdriver.ChromeOptions()
        programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
        assert all(programs), "Install the packages chromium and chromium-driver"
        options.binary_location = str(programs[0])
        for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1280,800"):
            options.add_argument(f"--{argument}")
        options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
        options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
        self.url, self.folder = url, folder
        self.driver = webdriver.Chrome(options=options, service=Service(str(programs[1])))

    def open(self, path: str) -> None:
        """Go to an address of the dashboard."""
        self.driver.get(self.url + path)

    def one(self, css: str) -> WebElement:
        """The element, once it is there."""
        found = eventually(lambda: self.driver.find_elements(By.CSS_SELECTOR, css))
        assert isinstance(found, list)
        first: WebElement = found[0]
        return first

    def text(self) -> str:
        """What the page says; "" while another one takes its place."""
        try:
            return str(self.driver.find_element(By.TAG_NAME, "body").text)
        except WebDriverException:
            return ""

    def reads(self, text: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until the page says something."""
        eventually(lambda: text in self.text(), seconds)

    def sign_in(self, token: str) -> None:
        """Fill the form and send it, as often as the page replaces it meanwhile."""

        def sent() -> bool:
            field = self.one("#gl-token")
            try:
                if not field.is_displayed():
                    self.one("details.gl-other summary").click()
                field.clear()
                field.send_keys(token)
                filled = field.get_attribute("value") == token
                if filled:
                    self.one("details.gl-other button").click()
            except WebDriverException:
                return not self.driver.find_elements(By.CSS_SELECTOR, "#gl-token")
            return filled

        eventually(sent)

    def asked_for(self) -> set[str]:
        """The addresses that the browser asked for since the last look, data and blobs left out."""
        log: list[dict[str, str]] = self.driver.get_log("performance")  # type: ignore[no-untyped-call]
        messages = [json.loads(one["message"])["message"] for one in log]
        urls = {
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        }
        return {url for url in urls if url.startswith(("http:", "https:", "ws:", "wss:"))}


@pytest.fixture
def browsers(served: tuple[str, FakeAPI], tmp_path: Path) -> Iterator[Callable[[], Browser]]:
    """Makes browsers; all are closed in the end."""
    opened: list[Browser] = []

    def make() -> Browser:
        opened.append(Browser(served[0], tmp_path))
        return opened[-1]

    yield make
    for one in opened:
        one.driver.quit()


def test_sign_in_deep_link_reload_and_sign_out(browsers: Callable[[], Browser]) -> None:
    """A link to a batch survives signing in and reloading; the session is out of scripts' reach; it can end."""
    browser = browsers()
    browser.open(f"/batch?id={DONE}")
    browser.sign_in("gl-wrong")
    browser.reads("not known here")
    browser.sign_in(scripted.ALICE)
    browser.reads("Support tickets, week 1")
    assert browser.driver.current_url == f"{browser.url}/batch?id={DONE}"
    browser.reads("0.0005936 credits")
    assert "gridline_session" not in browser.driver.execute_script("return document.cookie")
    browser.driver.refresh()
    browser.reads("Support tickets, week 1")
    browser.one(f'a[href$="/download/{DONE}/output"]').click()
    eventually((browser.folder / f"{DONE}_output.jsonl").is_file)
    browser.one('a[href$="/batches"]').click()
    browser.reads("Cost (credits)")
    browser.one(f'a[href*="id={HALF}"]').click()
    browser.reads("GSM8K, test split")
    assert browser.driver.current_url == f"{browser.url}/batch?id={HALF}"
    browser.one(".gl-out").click()
    browser.one("#gl-token")
    browser.open(f"/batch?id={DONE}")
    browser.one("#gl-token")


def test_an_open_batch_is_followed_until_it_ends(
    browsers: Callable[[], Browser], served: tuple[str, FakeAPI]
) -> None:
    """Progress appears without a click, and once the batch has ended nothing is asked for any more."""
    alice = served[1].accounts[scripted.ALICE]
    browser = browsers()
    browser.open(f"/batch?id={HALF}")
    browser.sign_in(scripted.ALICE)
    browser.reads("802 done")
    before = dict(alice.batches)
    try:
        alice.add(
            "dHalf", "completed", ago=900, hold="0.015000000", cost="0.004000000", counts=(1_319, 1_313, 6)
        )
        browser.reads("1,313 done")
        browser.reads("0.011 credits")
        browser.reads("Completed, with failed lines")
        served[1].seen.clear()
        # More than one beat of the fragment; there is nothing to wait for but silence.
        time.sleep(7)
        assert served[1].seen == []
    finally:
        alice.batches.update(before)


def test_the_list_follows_without_piling_up(
    browsers: Callable[[], Browser], served: tuple[str, FakeAPI]
) -> None:
    """A new balance and a new batch appear without a click, each once."""
    alice = served[1].accounts[scripted.ALICE]
    browser = browsers()
    browser.open("/batches")
    browser.sign_in(scripted.ALICE)
    browser.reads("87.4129604")
    balance = dict(alice.shown["balance"])
    try:
        for available in ("86.00", "85.00"):
            alice.shown["balance"]["available"] = available
            browser.reads(available)
        metrics = browser.driver.find_elements(By.CSS_SELECTOR, '[data-testid="stMetric"]')
        assert len(metrics) == 3
        rows = browser.driver.find_elements(By.CSS_SELECTOR, '[class*="st-key-row-"]')
        assert len(rows) == len(alice.batches)
    finally:
        alice.shown["balance"] = balance


def test_two_browsers_keep_apart(browsers: Callable[[], Browser]) -> None:
    """Two customers of one server see their own account, whoever looks at whose link."""
    alice, bob = browsers(), browsers()
    alice.open("/batches")
    bob.open("/batches")
    alice.sign_in(scripted.ALICE)
    bob.sign_in(scripted.BOB)
    alice.reads("Alice Analytics")
    bob.reads("Bob's secret batch")
    bob.open(f"/batch?id={DONE}")
    bob.reads("There is no such batch")
    alice.driver.refresh()
    alice.reads("Support tickets, week 1")
    assert "Bob" not in alice.driver.find_element(By.TAG_NAME, "body").text


def test_hostile_text_runs_nothing_and_loads_nothing(browsers: Callable[[], Browser]) -> None:
    """A page full of markup, images and links from a customer asks nobody but this server for anything."""
    browser = browsers()
    browser.open(f"/batch?id={BAD}")
    browser.sign_in(scripted.ALICE)
    browser.reads("<script>alert(1)</script>")
    browser.reads("3 problems")
    assert (
        browser.driver.find_elements(
            By.CSS_SELECTOR, 'img[src*="evil"], a[href*="evil"], a[href^="javascript"]'
        )
        == []
    )
    here = browser.url.removeprefix("http")
    assert {url for url in browser.asked_for() if not url.startswith(("http" + here, "ws" + here))} == set()


def test_the_pages_of_money(browsers: Callable[[], Browser]) -> None:
    """From the sidebar to a month's usage as a chart, to its statement, and to the statement's sheet on disk."""
    browser = browsers()
    browser.open("/usage")
    browser.sign_in(scripted.ALICE)
    browser.reads("Charged credits by UTC day")
    browser.one("[data-testid='stVegaLiteChart'] canvas, [data-testid='stVegaLiteChart'] svg")
    browser.one("[data-testid='stSidebarNav'] a[href$='/billing']").click()
    browser.reads("Credits before")
    browser.one("a[href*='/download/statement/']").click()
    eventually(lambda: list(browser.folder.glob("gridline-statement-*.csv")))
    assert [one.read_text()[:5] for one in browser.folder.glob("*.csv")] == ["at,id"]
