"""An operator in a real Chromium: signs in at Airflow's own page, reads Gridline's pages and sends their forms."""

from pathlib import Path

from selenium.webdriver.common.by import By

from tests.dashboard.test_browser import Browser
from tests.plugins.real_airflow import add_user
from tests.stack import Stack, eventually

PAGES = "/pluginsv2/gridline"


class Operator(Browser):
    """One person with the role `Gridline operator`."""

    def __init__(self, stack: Stack, name: str, folder: Path) -> None:
        with stack.airflow() as admin:
            add_user(admin, name, "Gridline operator")
        super().__init__(stack.config.public_airflow_url, folder)
        self.name = name

    def sign_in_here(self) -> None:
        """At Airflow's page, from the page that asks for it."""
        self.open(f"{PAGES}/")
        self.one("input[name=username]").send_keys(self.name)
        self.one("input[name=password]").send_keys(f"password of {self.name}")
        self.one("[type=submit]").click()
        self.reads("Overview")

    def page(self, path: str = "/") -> str:
        """Go to one of our pages; its text."""
        self.open(PAGES + path)
        self.reads("Overview")
        return self.text()

    def page_says(self, path: str, words: str, *, seconds: float) -> None:
        """Load the page anew until it says the words."""
        eventually(lambda: words in self.page(path), seconds=seconds, what=f"{path} says {words!r}", every=1)

    def click(self, link: str) -> None:
        """Follow the link of these words."""
        self.driver.find_element(By.LINK_TEXT, link).click()

    def send(self, title: str, **fields: str) -> None:
        """Fill the form of this title and press its button."""
        form = self.driver.find_element(By.XPATH, f"//form[h4[text()='{title}']]")
        for name, text in fields.items():
            field = form.find_element(By.NAME, name)
            field.clear()
            field.send_keys(text)
        form.find_element(By.TAG_NAME, "button").click()
