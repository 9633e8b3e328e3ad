"""The operator's pages in a Flask-AppBuilder application of their own, with the two roles that Airflow's setup makes."""

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

PASSWORD = "a password"
SIGN_IN = "/sign-in"

ROLES = {
    "operator": ("can_read", "can_edit"),
    "viewer": ("can_read",),
    "stranger": (),
}
"""Who may what on our pages; ``admin`` gets whatever the pages register."""


def make_app() -> Flask:
    """The application with its users, in a database in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the framework's own
        from flask_appbuilder import AppBuilder
        from flask_appbuilder.models.sqla.base import SQLA
        from flask_wtf.csrf import CSRFProtect

        app = Flask("airflow")
        app.config.update(SECRET_KEY="secret", SQLALCHEMY_DATABASE_URI="sqlite://", TESTING=True)
        CSRFProtect(app)  # as Airflow's application does
        database = SQLA(app)
        with app.app_context():
            builder = AppBuilder(app, database.session)
            _add(builder)
    return app


def _add(builder: Any) -> None:
    from gridline_airflow.pages.views import VIEWS

    security = builder.sm
    for name, rights in ROLES.items():
        role = security.add_role(name)
        for right in rights:
            security.add_permission_role(role, security.add_permission_view_menu(right, "Gridline"))
        security.add_user(name, name, "", f"{name}@example.org", role, password=PASSWORD)
    # After the roles, as in Airflow: registering a view must take no right from them.
    for view in VIEWS:
        builder.add_view_no_menu(view)
    admin = security.find_role("Admin")
    security.add_user("admin", "admin", "", "admin@example.org", admin, password=PASSWORD)


@dataclass
class Browser:
    """One person at the pages."""

    client: FlaskClient
    forms: dict[str, dict[str, str]] = field(default_factory=dict)
    """Hidden fields of the last page's forms, by the last word of their address."""

    def sign_in(self, name: str) -> None:
        """As the login page does it."""
        typed = {"username": name, "password": PASSWORD, "csrf_token": self.csrf_token()}
        assert self.client.post("/login/", data=typed).status_code == 302

    def csrf_token(self) -> str:
        """The session's token, signed in or not."""
        with self.client.application.test_request_context(), self.client.session_transaction() as kept:
            from flask import session
            from flask_wtf.csrf import generate_csrf

            token: str = generate_csrf()
            kept["csrf_token"] = session["csrf_token"]
        return token

    def get(self, address: str, *, status: int = 200) -> str:
        """A page's HTML; its forms are remembered."""
        answer = self.client.get(address)
        assert answer.status_code == status, answer.text
        return self._read(answer)

    def post(self, address: str, *, status: int = 200, **typed: str) -> str:
        """Send the form of this address, as the last page gave it, and follow where it leads; the HTML."""
        hidden = self.forms[address.rpartition("/")[2]]
        answer = self.client.post(address, data=hidden | typed, follow_redirects=True)
        assert answer.status_code == status, answer.text
        return self._read(answer)

    def _read(self, answer: TestResponse) -> str:
        self.forms = dict(_forms(answer.text))
        return answer.text


SignIn = Callable[[str], Browser]
"""A browser in which this person is signed in; "" for nobody."""


def _forms(html: str) -> Iterator[tuple[str, dict[str, str]]]:
    for action, body in re.findall(r'<form method="post" action="([^"]+)"(.*?)</form>', html, re.DOTALL):
        hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', body)
        yield action.rpartition("/")[2], {name: unescape(value) for name, value in hidden}
