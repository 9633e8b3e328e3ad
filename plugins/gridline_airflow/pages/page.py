"""What every page of the operator is: its right, its templates, how it shows amounts and times, how it acts."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from flask import flash, redirect, request
from flask_appbuilder import BaseView

from gridline.batches.reasons import REASONS, ReasonCode
from gridline.db.work import Work, unit_of_work
from gridline.errors import GridlineError
from gridline.money import credits_text
from gridline_airflow.pages import guard

Answer = tuple[str, int]
MINUTE, HOUR = 60, 3600


def utc(moment: datetime | None) -> str:
    """An instant to the second; "" for none."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def lasted(since: datetime | None, until: datetime) -> str:
    """How long it took, in the two units that matter; "" where it never began."""
    if since is None:
        return ""
    seconds = max(0, int((until - since).total_seconds()))
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min {seconds % MINUTE} s"
    return f"{seconds // HOUR} h {seconds % HOUR // MINUTE} min"


def helps(code: str) -> str:
    """A reason's sentence, as customers read it."""
    return REASONS[ReasonCode(code)].sentence


class Page(BaseView):  # type: ignore[misc]  # Flask-AppBuilder has no types
    """A view of ours. Reads and writes in short units of work; keeps nothing between requests."""

    class_permission_name = guard.RESOURCE
    # Both on every page, whatever it does: Flask-AppBuilder takes from all roles what a view of this name leaves out.
    base_permissions = [f"can_{guard.READ}", f"can_{guard.EDIT}"]  # noqa: RUF012  # read from the class
    template_folder = str(Path(__file__).with_name("templates"))
    extra_args = {  # noqa: RUF012  # read from the class
        "credits": credits_text,
        "utc": utc,
        "lasted": lasted,
        "helps": helps,
    }

    def shown(self, name: str, *, status: int = 200, **values: Any) -> Answer:
        """The page of this template."""
        may_edit = guard.may(self, guard.EDIT)
        return self.render_template(f"gridline/{name}.html", may_edit=may_edit, **values), status

    def refusal(self, error: GridlineError) -> Answer:
        """A page that only says why not."""
        return self.shown("refusal", status=error.status, error=error.message)

    def act(
        self,
        form: str,
        action: Callable[[Work, str], str],
        *,
        then: str,
        again: Callable[..., Answer],
    ) -> Any:
        """Do it in one unit of work, and go to a page that may be loaded again; what was done is said there.

        What the domain refuses is said on the page ``again``, with all that was typed into the form still in it.
        """
        try:
            with unit_of_work() as work:
                said = action(work, guard.actor())
        except GridlineError as error:
            return again(error=error, failed=form, given=request.form.to_dict())
        flash(said, "info")
        return redirect(then)
