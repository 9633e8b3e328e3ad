"""Batches: a list to filter, one with all that tells where it stands, and what an operator does to it."""

from collections.abc import Mapping
from typing import Any

from flask import request, url_for

from gridline.batches.reasons import ReasonCode
from gridline.batches.states import Status
from gridline.capacity import operator_hold
from gridline.db.work import Work, reading
from gridline.errors import GridlineError
from gridline.money import credits_text
from gridline.operate import crediting
from gridline.operate.desk import acting, batches
from gridline.settings import settings
from gridline_airflow.pages import forms
from gridline_airflow.pages.accounts import TWICE, key_of
from gridline_airflow.pages.guard import acts, shows
from gridline_airflow.pages.page import Answer, Page


class GridlineBatches(Page):
    """Batches of all accounts."""

    route_base = "/gridline/batches"
    default_view = "every"

    @shows("")
    def every(self) -> Answer:
        """Batches, newest first, that the filter leaves."""
        names = ("status", "reason", "account_id")
        wanted = batches.Filter(**{name: forms.searched(request.args, name) for name in names})
        with reading() as work:
            rows, before = batches.page(work, wanted, before=forms.cursor(request.args))
            now = work.now
        return self.shown(
            "batches",
            rows=rows,
            before=before,
            wanted=wanted,
            now=now,
            statuses=[str(one) for one in Status],
            reasons=[batches.MOVING, *(str(one) for one in ReasonCode)],
        )

    @shows("/<batch_id>")
    def one(self, batch_id: str) -> Answer:
        """One batch."""
        return self._page(batch_id)

    @acts("/<batch_id>/cancel")
    def cancel(self, batch_id: str) -> Any:
        """End it, as its customer could."""

        def action(work: Work, actor: str) -> str:
            made = acting.cancel(work, batch_id, actor=actor, why=forms.reason(request.form))
            return "The batch is being cancelled." if made else "The batch is ending already."

        return self._act("cancel", batch_id, action)

    @acts("/<batch_id>/hold")
    def hold(self, batch_id: str) -> Any:
        """Give it no new GPU, with a note that its customer reads."""

        def action(work: Work, actor: str) -> str:
            known = batches.known(work, batch_id)
            made = operator_hold.hold(work, known.id, note=request.form.get("note", ""), actor=actor)
            return "The batch is held." if made else "The batch is held already; the note is the old one."

        return self._act("hold", batch_id, action)

    @acts("/<batch_id>/release")
    def release(self, batch_id: str) -> Any:
        """Let it go on."""

        def action(work: Work, actor: str) -> str:
            made = operator_hold.release(work, batches.known(work, batch_id).id, actor=actor)
            return "The batch is released." if made else "Nobody holds the batch: nothing has changed."

        return self._act("release", batch_id, action)

    @acts("/<batch_id>/run")
    def run(self, batch_id: str) -> Any:
        """Ask for its run again."""

        def action(work: Work, actor: str) -> str:
            made = acting.ask_for_run(
                work, batch_id, asked=forms.cursor(request.form, "asked") or 0, actor=actor
            )
            return "The keeper asks Airflow for the run." if made else "The run is asked for already."

        return self._act("run", batch_id, action)

    @acts("/<batch_id>/refund")
    def refund(self, batch_id: str) -> Any:
        """Give back of what it was charged."""

        def action(work: Work, actor: str) -> str:
            nanos, why, key = forms.amount(request.form), forms.reason(request.form), forms.key(request.form)
            made = crediting.refund(
                work, batches.known(work, batch_id).id, nanos, actor=actor, why=why, key=key
            )
            return f"Refunded {credits_text(nanos)} credits." if made else TWICE

        return self._act("refund", batch_id, action)

    def _act(self, form: str, batch_id: str, action: Any) -> Any:
        def again(**values: Any) -> Answer:
            return self._page(batch_id, **values)

        then = url_for("GridlineBatches.one", batch_id=batch_id)
        return self.act(form, action, then=then, again=again)

    def _page(
        self,
        batch_id: str,
        *,
        error: GridlineError | None = None,
        failed: str = "",
        given: Mapping[str, str] | None = None,
    ) -> Answer:
        with reading() as work:
            found = batches.show(work, batch_id)
            now = work.now
        return self.shown(
            "batch",
            status=200 if error is None else error.status,
            found=found,
            now=now,
            run_page=settings().airflow_run_page(batch_id),
            error=error and error.message,
            given={failed: given or {}},
            key=key_of(error, given),
        )
