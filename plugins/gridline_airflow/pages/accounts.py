"""Accounts: a list to search, one with its limits, entries and changes, and what an operator does to it."""

from collections.abc import Mapping
from typing import Any

from flask import request, url_for

from gridline import ids
from gridline.db.work import Work, reading
from gridline.errors import GridlineError
from gridline.ledger.errors import KeyReused
from gridline.money import credits_text
from gridline.operate import crediting
from gridline.operate.desk import accounts
from gridline_airflow.pages import forms
from gridline_airflow.pages.guard import acts, shows
from gridline_airflow.pages.page import Answer, Page

TWICE = "This was done before: nothing has changed."


class GridlineAccounts(Page):
    """Who owns batches and credit."""

    route_base = "/gridline/accounts"
    default_view = "every"

    @shows("")
    def every(self) -> Answer:
        """Accounts by name, those with the searched words in it."""
        search = forms.searched(request.args, "search")
        after = forms.searched(request.args, "after") or None
        with reading() as work:
            rows, after = accounts.page(work, search=search, after=after)
        return self.shown("accounts", rows=rows, search=search, after=after)

    @shows("/<account_id>")
    def one(self, account_id: str) -> Answer:
        """One account."""
        return self._page(account_id)

    @acts("/<account_id>/grant")
    def grant(self, account_id: str) -> Any:
        """Give credit."""

        def action(work: Work, actor: str) -> str:
            nanos, why, key = forms.amount(request.form), forms.reason(request.form), forms.key(request.form)
            made = crediting.grant(
                work, accounts.known(work, account_id).id, nanos, actor=actor, why=why, key=key
            )
            return f"Granted {credits_text(nanos)} credits." if made else TWICE

        return self._act("grant", account_id, action)

    @acts("/<account_id>/adjust")
    def adjust(self, account_id: str) -> Any:
        """Add or take credit, as a correction."""

        def action(work: Work, actor: str) -> str:
            nanos, why, key = forms.amount(request.form), forms.reason(request.form), forms.key(request.form)
            made = crediting.adjust(
                work, accounts.known(work, account_id).id, nanos, actor=actor, why=why, key=key
            )
            return f"Adjusted by {credits_text(nanos)} credits." if made else TWICE

        return self._act("adjust", account_id, action)

    @acts("/<account_id>/limits")
    def set_limits(self, account_id: str) -> Any:
        """Set what the account may use at once and in a day."""

        def action(work: Work, actor: str) -> str:
            made = accounts.change_limits(
                work,
                account_id,
                forms.account_limits(request.form),
                seen=forms.account_limits(request.form, "seen_"),
                actor=actor,
                why=forms.reason(request.form),
            )
            return "The limits are changed." if made else "The limits are these already: nothing has changed."

        return self._act("limits", account_id, action)

    def _act(self, form: str, account_id: str, action: Any) -> Any:
        def again(**values: Any) -> Answer:
            return self._page(account_id, **values)

        then = url_for("GridlineAccounts.one", account_id=account_id)
        return self.act(form, action, then=then, again=again)

    def _page(
        self,
        account_id: str,
        *,
        error: GridlineError | None = None,
        failed: str = "",
        given: Mapping[str, str] | None = None,
    ) -> Answer:
        with reading() as work:
            found = accounts.show(work, account_id)
        return self.shown(
            "account",
            status=200 if error is None else error.status,
            found=found,
            error=error and error.message,
            given={failed: given or {}},
            key=key_of(error, given),
        )


def key_of(error: GridlineError | None, given: Mapping[str, str] | None) -> str:
    """The key of a page's forms: a new one, but after an error the same, or what did happen would happen again."""
    if error is None or isinstance(error, KeyReused) or not given or not given.get("key"):
        return ids.new("request")
    return given["key"]
