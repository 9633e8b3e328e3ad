"""Webhooks and messages to the operator as a customer sees them, on the live API."""

from typing import Any

import pytest
from sqlalchemy import Engine, text
from streamlit.testing.v1 import AppTest  # noqa: TID253 - the dashboard is Streamlit's room, and so are its tests

from gridline.db.work import unit_of_work
from gridline.notices import webhooks
from tests.api.conftest import Customer, address, ann, bob, database, pepper, shared_database, windows
from tests.dashboard.conftest import SignIn, text_of

__all__ = ["address", "ann", "bob", "database", "pepper", "shared_database", "windows"]

pytestmark = pytest.mark.programs

PUBLIC = "https://93.184.215.14/hooks"


def button(page: AppTest, label: str) -> Any:
    """The page's button with this label."""
    return next(one for one in page.button if one.label == label)


def added(page: AppTest, url: str = PUBLIC) -> AppTest:
    """The page after a webhook was added."""
    page.text_input[0].set_value(url)
    page.multiselect[0].set_value(["batch.completed", "batch.failed"])
    button(page, "Add a webhook").click().run()
    return page


def test_a_secret_is_shown_once(sign_in: SignIn, address: str, ann: Customer) -> None:
    """It is on the page that made it, and neither after it was kept nor on any later page."""
    visit = sign_in(address, ann.token)
    page = added(visit.run("webhooks"))
    secret = next(one.value for one in page.code if one.value.startswith("whsec_"))
    button(page, "I have kept it").click().run()
    assert secret not in text_of(page)
    added(page, f"{PUBLIC}/2")
    assert "whsec_" in text_of(page)
    visit.run("files")
    assert "whsec_" not in text_of(visit.run("webhooks"))


def test_a_webhook_is_tested_changed_and_deleted(
    sign_in: SignIn, address: str, ann: Customer, bob: Customer
) -> None:
    """Its events, its last deliveries and what can be done with it; another account sees none of it."""
    visit = sign_in(address, ann.token)
    page = added(visit.run("webhooks"))
    button(page, "I have kept it").click().run()
    (webhook,) = ann.http.get("/gridline/v1/webhooks").json()["data"]
    assert webhook["events"] == ["batch.completed", "batch.failed"]
    page.button(key=f"test-{webhook['id']}").click().run()
    assert list(page.dataframe[0].value["State"]) == ["To be sent"]
    page.button(key=f"rotate-{webhook['id']}").click().run()
    assert "whsec_" in text_of(page)
    ann.http.post(f"/gridline/v1/webhooks/{webhook['id']}", json={"disabled": True})
    page.run()
    assert "Disabled" in text_of(page)
    page.button(key=f"enable-{webhook['id']}").click().run()
    assert "Active" in text_of(page)
    assert PUBLIC not in text_of(sign_in(address, bob.token).run("webhooks"))
    visit.run("webhooks").button(key=f"delete-{webhook['id']}").click().run()
    assert ann.http.get("/gridline/v1/webhooks").json()["data"] == []


def test_a_customer_reads_why_an_operator_disabled_a_webhook(
    sign_in: SignIn, address: str, ann: Customer
) -> None:
    """The operator's words stand on the page, as text whatever they hold, beside the button that enables it."""
    visit = sign_in(address, ann.token)
    added(visit.run("webhooks"))
    (webhook,) = ann.http.get("/gridline/v1/webhooks").json()["data"]
    with unit_of_work() as work:
        webhooks.disable(work, webhook["id"], why="It answers <b>500</b>.", actor="operator:olga")
    page = visit.run("webhooks")
    assert "Disabled by the operator: It answers &lt;b&gt;500&lt;/b&gt;." in text_of(page)
    page.button(key=f"enable-{webhook['id']}").click().run()
    assert "Active" in text_of(page)


def test_an_address_that_is_not_public_is_refused_with_a_sentence(
    sign_in: SignIn, address: str, ann: Customer
) -> None:
    """What the API says of it stands on the page, and nothing is added."""
    page = added(sign_in(address, ann.token).run("webhooks"), "http://127.0.0.1:8000/")
    assert "The webhook was not added" in text_of(page)
    assert ann.http.get("/gridline/v1/webhooks").json()["data"] == []


def test_a_message_reaches_the_operator_with_its_batch(
    sign_in: SignIn, address: str, ann: Customer, database: Engine
) -> None:
    """From the batch's page its id is filled in; what was written is stored with it."""
    batch_id = str(ann.batch()["id"])
    page = sign_in(address, ann.token).run("contact", batch=batch_id)
    assert page.text_input[0].value == batch_id
    page.text_area[0].set_value("Please look at this one.")
    button(page, "Send").click().run()
    assert page.success[0].value == "The operator has your message."
    with database.connect() as connection:
        stored = connection.execute(
            text("SELECT text, batch_id FROM messages WHERE account_id = :id"), {"id": ann.account_id}
        ).all()
    assert [tuple(one) for one in stored] == [("Please look at this one.", batch_id)]


def test_a_message_about_anothers_batch_is_not_sent(
    sign_in: SignIn, address: str, ann: Customer, bob: Customer
) -> None:
    """The API does not know it, the page says so, and what was typed is still there."""
    page = sign_in(address, ann.token).run("contact", batch=str(bob.batch()["id"]))
    page.text_area[0].set_value("Mine?")
    button(page, "Send").click().run()
    assert "The message was not sent" in text_of(page)
    assert page.text_area[0].value == "Mine?"
