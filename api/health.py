"""Whether this process lives, whether it can serve, and its figures. No token: no customer's data is here."""

from typing import Any

from flask import Blueprint, Response
from sqlalchemy import text

from api.reference.operations import Content, operation
from gridline import storage
from gridline.db.work import unit_of_work
from gridline.errors import Unavailable
from gridline.storage import layout
from gridline.telemetry import metrics

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
@operation("Platform", "checkHealth", "Whether the process lives", returns="Health")
def alive() -> dict[str, Any]:
    """The process answers; a failing dependency is no reason to restart it."""
    return {"status": "ok"}


@blueprint.get("/readyz")
@operation(
    "Platform",
    "checkReadiness",
    "Whether it can serve",
    returns="Readiness",
    refuses=("service_unavailable",),
)
def ready() -> dict[str, Any]:
    """The database and the store answer.

    Raises:
        Unavailable: one of them does not; send no requests here for now.
    """
    with unit_of_work() as work:
        work.session.execute(text("SELECT 1"))
    _check_store()
    return {"status": "ok", "checks": {"database": "ok", "store": "ok"}}


@blueprint.get("/metrics")
@operation("Platform", "readMetrics", "Its figures", returns={200: Content("Metrics", "text/plain")})
def figures() -> Response:
    """This process's metrics in Prometheus' text format."""
    page, content_type = metrics.render()
    return Response(page, content_type=content_type)


def _check_store() -> None:
    key = layout.file_key("readiness", "probe")
    try:
        storage.store().size(key)
    except OSError as error:
        raise Unavailable("The object store is away. Try again in a moment.") from error
