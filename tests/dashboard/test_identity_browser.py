"""Signing in with an identity provider in a real Chromium, before the real API and a provider that asks for every proof."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from dashboard.identity import CALLBACK
from gridline.db.work import unit_of_work
from gridline.ledger import posting
from tests.conftest import free_port
from tests.dashboard.test_browser import ROOT, Browser, eventually, healthy
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, identity_provider
from tests.serving import serving

pytestmark = pytest.mark.browser


@pytest.fixture
def served(database: Engine, tmp_path: Path) -> Iterator[tuple[str, IdentityProvider]]:
    """API and dashboard as processes of their own that believe a provider: the dashboard's address, and the provider."""
    with unit_of_work() as work:
        posting.open_platform_books(work)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with identity_provider() as provider:
        provider.redirect_uri = url + CALLBACK
        believed = {"GRIDLINE_OIDC_ISSUER": provider.url, "GRIDLINE_OIDC_CLIENT_ID": CLIENT_ID}
        with serving(database, tmp_path / "api", **believed) as api:
            environment = {
                **os.environ,
                **believed,
                "GRIDLINE_OIDC_CLIENT_SECRET": CLIENT_SECRET,
                "GRIDLINE_API_URL": api.url,
                "GRIDLINE_DASHBOARD_PORT": str(port),
                "GRIDLINE_DASHBOARD_URL": url,
            }
            log = (tmp_path / "dashboard.log").open("wb")
            child = subprocess.Popen(
                [sys.executable, "-m", "dashboard"], cwd=ROOT, env=environment, stdout=log, stderr=log
            )
            try:
                eventually(lambda: healthy(url))
                yield url, provider
            finally:
                child.terminate()
                assert child.wait(15) is not None
                log.close()


def enter(browser: Browser) -> None:
    """Press the provider's button, as often as the page replaces it meanwhile."""
    eventually(
        lambda: browser.driver.execute_script(
            "const one = document.querySelector('form[action=\"/oidc/start\"] button'); if (one) one.click(); return !!one"
        )
    )


def test_there_and_back_in_a_browser(served: tuple[str, IdentityProvider], tmp_path: Path) -> None:
    """The button leads to the provider and back to the page that was asked for, signed in; what it refuses is said there."""
    url, provider = served
    ann = Browser(url, tmp_path)
    try:
        ann.open("/tokens")
        ann.reads("Sign in with 127.0.0.1")
        provider.refusal = "access_denied"
        enter(ann)
        ann.reads("You did not sign in at your identity provider")
        provider.refusal = ""
        enter(ann)
        ann.reads("No tokens yet")
        assert ann.driver.current_url == f"{url}/tokens"
        assert "gridline_" not in ann.driver.execute_script("return document.cookie")
        logged = (tmp_path / "dashboard.log").read_text()
        hidden = (CLIENT_SECRET, "gl_session_", *provider.issued)
        assert not [secret for secret in hidden if secret in logged]
        ann.one(".gl-out").click()
        ann.one("#gl-email")
    finally:
        ann.driver.quit()
