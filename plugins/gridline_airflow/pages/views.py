"""The pages by address: what the platform does now, and who did what."""

from flask import request

from gridline.db.work import reading
from gridline.operate.desk import audit, overview
from gridline_airflow.pages import forms
from gridline_airflow.pages.accounts import GridlineAccounts
from gridline_airflow.pages.batches import GridlineBatches
from gridline_airflow.pages.guard import shows
from gridline_airflow.pages.page import Answer, Page


class GridlineOverview(Page):
    """Open batches and their waits, GPUs and leases, the last proof, the day's budget."""

    route_base = "/gridline"
    default_view = "home"

    @shows("/")
    def home(self) -> Answer:
        """The first page."""
        with reading() as work:
            found = overview.look(work)
        return self.shown("overview", found=found)


class GridlineAudit(Page):
    """Who did what, newest first."""

    route_base = "/gridline/audit"
    default_view = "log"

    @shows("")
    def log(self) -> Answer:
        """A page of it."""
        with reading() as work:
            rows, before = audit.page(work, before=forms.cursor(request.args))
        return self.shown("audit", rows=rows, before=before)


VIEWS = (GridlineOverview, GridlineAccounts, GridlineBatches, GridlineAudit)
