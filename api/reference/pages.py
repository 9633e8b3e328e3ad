"""Serves the document (``/openapi.json``) and the page that shows it (``/docs``). No token: no customer's data is here."""

from importlib.resources import files
from pathlib import Path

from flask import Blueprint, Response, current_app, request
from werkzeug.exceptions import NotFound

from api.reference.document import build, text_of
from api.reference.operations import not_described, operation

HERE = Path(__file__).with_name("page")
SWAGGER_UI = Path(str(files("flask_swagger_ui"))) / "dist"
"""Swagger UI as its package carries it: nothing is fetched from another host."""

ASSETS = {
    "icon.svg": (HERE, "image/svg+xml"),
    "page.css": (HERE, "text/css; charset=utf-8"),
    "page.js": (HERE, "text/javascript; charset=utf-8"),
    "swagger-ui.css": (SWAGGER_UI, "text/css; charset=utf-8"),
    "swagger-ui-bundle.js": (SWAGGER_UI, "text/javascript; charset=utf-8"),
}
"""The page's files, all of them: where each lies, and its type."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_MADE = "gridline-reference"

blueprint = Blueprint("reference", __name__)


@blueprint.get("/openapi.json")
@operation("Platform", "readReference", "This document", returns="Document")
def document() -> Response:
    """The calls of this platform as OpenAPI 3.1, for tools that make clients or checks of it."""
    made = current_app.extensions
    if _MADE not in made:
        made[_MADE] = text_of(build(current_app)).encode()
    return Response(made[_MADE], content_type="application/json")


@blueprint.get("/docs")
@not_described
def page() -> Response:
    """The page: everything that it loads comes from this server, and no script stands in it."""
    answer = _answer(HERE / "index.html", "text/html; charset=utf-8")
    answer.headers["Content-Security-Policy"] = POLICY
    answer.headers["Referrer-Policy"] = "no-referrer"
    return answer


@blueprint.get("/docs/<name>")
@not_described
def asset(name: str) -> Response:
    """A file that the page loads."""
    if name not in ASSETS:
        raise NotFound
    folder, content_type = ASSETS[name]
    return _answer(folder / name, content_type)


def _answer(path: Path, content_type: str) -> Response:
    answer = Response(path.read_bytes(), content_type=content_type)
    answer.add_etag()
    # Asked for again every time, sent again only when it is another: a release shows at once.
    answer.headers["Cache-Control"] = "no-cache"
    answer.make_conditional(request)
    return answer
