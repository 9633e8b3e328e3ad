"""The routes beside the pages: sign in, sign out, downloads."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from dashboard import sessions
from dashboard.entrance import local_path
from dashboard.headers import SafeHeaders
from dashboard.routes import ROUTES
from tests.dashboard import scripted
from tests.dashboard.fake_api import FakeAPI

ROOT = Path(__file__).resolve().parents[2]
HOME = "http://dashboard.test"
DONE, MIXED = "batch_fDone".ljust(30, "0"), "batch_gMixed".ljust(30, "0")


@pytest.fixture
def browser(api: FakeAPI) -> Iterator[TestClient]:
    """A browser on the dashboard's own origin."""
    app = Starlette(routes=ROUTES, middleware=[Middleware(SafeHeaders)])
    with TestClient(app, base_url=HOME, headers={"origin": HOME}, follow_redirects=False) as client:
        yield client


def sign_in(browser: TestClient, token: str = scripted.ALICE, **fields: str) -> str:
    """Post the form; where it leads."""
    answer = browser.post("/session/in", data={"token": token, "next": "/"} | fields)
    assert answer.status_code == 303
    return answer.headers["location"]


def test_the_cookie_is_opaque_and_out_of_scripts_reach(browser: TestClient) -> None:
    """Signing in sets an HttpOnly, SameSite=Lax cookie that holds neither the token nor a trace of it."""
    answer = browser.post("/session/in", data={"token": f" {scripted.ALICE}\n", "next": f"/batch?id={DONE}"})
    assert answer.headers["location"] == f"/batch?id={DONE}"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert scripted.ALICE not in cookie
    session = sessions.SESSIONS.find(browser.cookies[sessions.COOKIE])
    assert session is not None
    assert session.account_name == "Alice Analytics"


@pytest.mark.parametrize(("token", "problem"), [("wrong", "invalid_api_key"), ("", "invalid_api_key"), ("\x00é", "invalid_api_key")])  # fmt: skip
def test_a_wrong_token_signs_nobody_in(browser: TestClient, token: str, problem: str) -> None:
    """A token that the API refuses makes no session and no cookie, and the page says why."""
    assert sign_in(browser, token, next="/batch?id=a") == f"/batch?id=a&sign_in={problem}"
    assert sessions.COOKIE not in browser.cookies


def test_an_api_that_is_away_is_not_a_wrong_token(browser: TestClient, api: FakeAPI) -> None:
    """When the token could not be checked the page does not call it wrong."""
    api.broken = 503
    assert sign_in(browser) == "/?sign_in=service_unavailable"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", f"{HOME}.evil.example", "https://dashboard.test"])  # fmt: skip
@pytest.mark.parametrize("path", ["/session/in", "/session/out"])
def test_forms_of_other_sites_are_refused(browser: TestClient, api: FakeAPI, path: str, origin: str) -> None:
    """A page elsewhere can neither sign a visitor in nor out: only our own origin may post."""
    sign_in(browser)
    kept = browser.cookies[sessions.COOKIE]
    answer = browser.post(path, data={"token": scripted.BOB}, headers={"origin": origin})
    assert answer.status_code == 403
    assert sessions.SESSIONS.find(kept) is not None
    assert all(token == scripted.ALICE for _, _, token in api.seen)


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "evil",
        "/a\r\nSet-Cookie: x=1",
        "",
        "javascript:x",
    ],
)
def test_signing_in_never_leads_elsewhere(target: str) -> None:
    """The address to go on to is one of ours or the first page."""
    assert local_path(target) == "/"
    assert local_path("/batch?id=batch_a&x=%2F") == "/batch?id=batch_a&x=%2F"


def test_signing_in_again_ends_the_earlier_session(browser: TestClient) -> None:
    """A cookie that was known before signing in is worth nothing afterwards."""
    sign_in(browser)
    before = browser.cookies[sessions.COOKIE]
    sign_in(browser, scripted.BOB)
    assert sessions.SESSIONS.find(before) is None
    assert browser.cookies[sessions.COOKIE] != before


def test_signing_out_ends_the_session_on_the_server(browser: TestClient) -> None:
    """A copied cookie is worth nothing after signing out."""
    sign_in(browser)
    copied = browser.cookies[sessions.COOKIE]
    assert browser.post("/session/out").headers["location"] == "/"
    assert sessions.COOKIE not in browser.cookies
    assert sessions.SESSIONS.find(copied) is None


def test_an_oversized_form_is_refused(browser: TestClient) -> None:
    """A form of megabytes is not kept in memory."""
    assert browser.post("/session/in", data={"token": "x" * 20_000}).status_code == 413


@pytest.mark.parametrize(("batch", "kind", "word"), [(DONE, "output", "output"), (MIXED, "errors", "error")])
def test_downloads_are_attachments_of_the_right_file(
    browser: TestClient, api: FakeAPI, batch: str, kind: str, word: str
) -> None:
    """Output and error files come byte for byte, with a safe name, their length, and never cached or sniffed."""
    sign_in(browser)
    answer = browser.get(f"/download/{batch}/{kind}", headers={"accept-encoding": "identity"})
    assert answer.status_code == 200
    assert answer.content == api.accounts[scripted.ALICE].contents[f"file-{word[:3]}-{batch[6:]}"]
    assert answer.headers["content-disposition"] == f'attachment; filename="{batch}_{kind}.jsonl"'
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_statement_is_an_attachment_of_its_month(browser: TestClient) -> None:
    """The month's statement comes as the API made it, for the account that is signed in, never cached."""
    assert browser.get("/download/statement/2028-02").headers["location"] == "/billing"
    sign_in(browser)
    answer = browser.get("/download/statement/2028-02")
    assert answer.text == "at,id\r\n2028-02-01,acct_Alice Analytics\r\n"
    assert answer.headers["content-disposition"] == 'attachment; filename="gridline-statement-2028-02.csv"'
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["cache-control"] == "private, no-store"
    assert browser.get("/download/statement/2028-13").status_code == 404


@pytest.mark.parametrize("path", [f"{DONE}/errors", f"{DONE}/input", "batch_zBob".ljust(30, "0") + "/output", "..%2F..%2Fx/output"])  # fmt: skip
def test_what_an_account_does_not_have_cannot_be_downloaded(browser: TestClient, path: str) -> None:
    """Missing files and another account's batches answer 404, with nothing of them."""
    sign_in(browser)
    answer = browser.get(f"/download/{path}")
    assert answer.status_code == 404
    assert "content-disposition" not in answer.headers
    assert "secret" not in answer.text


def test_downloads_need_a_session(browser: TestClient, api: FakeAPI) -> None:
    """Without a session a download leads to the batch's page, which asks to sign in; the API is not called."""
    answer = browser.get(f"/download/{DONE}/output")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/batch?id={DONE}")
    assert api.seen == []


def test_nothing_remote_may_load_and_nobody_may_frame(browser: TestClient) -> None:
    """Every answer carries the policy that stops remote images and frames."""
    headers = browser.get(f"/download/{DONE}/output").headers
    assert "img-src 'self' data: blob:" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"


def test_a_note_in_the_code_is_no_text_on_a_page() -> None:
    """Streamlit would draw every string that stands alone in a page's code, notes about names among them."""
    config = tomllib.loads((ROOT / "dashboard" / ".streamlit" / "config.toml").read_text())
    assert config["runner"]["magicEnabled"] is False
