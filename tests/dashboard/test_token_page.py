"""The page of API tokens, run against the fake API."""

import pytest

from tests.dashboard import scripted
from tests.dashboard.conftest import Visits, text_of
from tests.dashboard.fake_api import FakeAPI

pytestmark = pytest.mark.programs

ANN = "ann@example.com"


def secret_of(api: FakeAPI) -> str:
    """The text of the one token that was made."""
    (secret,) = [one for one in api.accounts if one.startswith("gl_live_text")]
    return secret


def test_a_token_is_shown_once(visits: Visits, api: FakeAPI) -> None:
    """Made with name and scopes, shown with what an SDK reads, then never again: not after dismissing it, nor on another page."""
    visit = visits.user(ANN)
    page = visit.run("tokens")
    assert "No tokens yet" in text_of(page)
    page.text_input[0].input("nightly runs")
    page.multiselect[0].set_value(["read"])
    page.button[0].click()
    shown = text_of(visit.run())
    assert secret_of(api) in shown
    assert f"{api.url}/openai/v1" in shown
    assert "nightly runs" in shown
    assert "Look at files, batches and credits" in shown
    assert len(visit.page.text_input) == 0
    visit.page.button(key="kept").click()
    shown = text_of(visit.run())
    assert secret_of(api) not in shown
    assert "gl_live_…7Yqk" in shown


def test_leaving_the_page_forgets_the_text(visits: Visits, api: FakeAPI) -> None:
    """A token that was shown and left is not there when the visitor comes back."""
    visit = visits.user(ANN)
    page = visit.run("tokens")
    page.text_input[0].input("laptop")
    page.button[0].click()
    shown = text_of(visit.run())
    assert secret_of(api) in shown
    assert secret_of(api) not in text_of(visit.run("account"))
    assert secret_of(api) not in text_of(visit.run("tokens"))


def test_a_token_needs_a_name_and_a_scope(visits: Visits, api: FakeAPI) -> None:
    """Without either nothing is sent, and the page says what is missing."""
    visit = visits.user(ANN)
    page = visit.run("tokens")
    page.multiselect[0].set_value([])
    page.text_input[0].input("laptop")
    page.button[0].click()
    page = visit.run()
    assert "choose what it may do" in page.warning[0].value
    assert [one for one in api.seen if one[0] == "POST" and "tokens" in one[1]] == []


def test_revoking_asks_first(visits: Visits, api: FakeAPI) -> None:
    """The button says what happens, and only the second one revokes; then the token is gone from the list."""
    visit = visits.user(ANN)
    (account,) = [one for secret, one in api.accounts.items() if secret.startswith("gl_session")]
    account.tokens["tok_0"] = {
        "id": "tok_0", "name": "<script>alert(1)</script>", "scopes": ["read"], "prefix": "gl_live_", "last_four": "7Yqk",
        "created_at": scripted.NOW, "last_used_at": None, "created_by": "operator",
    }  # fmt: skip
    page = visit.run("tokens")
    shown = text_of(page)
    assert "refused within 5 seconds" in shown
    assert "<script>" not in shown
    assert "made by the operator" in shown
    assert "never used" in shown
    page.button(key="revoke-tok_0").click()
    assert "No tokens yet" in text_of(visit.run())
    assert account.tokens == {}


def test_who_signed_in_with_a_token_is_told_why_not(visits: Visits, api: FakeAPI) -> None:
    """A token manages no tokens: the page says so and asks the API for nothing."""
    shown = text_of(visits.of(scripted.ALICE).run("tokens"))
    assert "needs a password" in shown
    assert [one for one in api.seen if "tokens" in one[1]] == []


def test_who_is_signed_in_is_not_asked_to_sign_up(visits: Visits) -> None:
    """The page for signing up leads a signed-in visitor to the first page."""
    page = visits.user(ANN).run("sign_up")
    assert page.title[0].value == "Overview"
    assert ANN in text_of(page)
