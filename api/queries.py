"""Query parameters: a call takes those that it describes, and refuses any other by its name instead of passing it over."""

from functools import lru_cache

from flask import Blueprint, current_app, request

from api.reference import parameters
from api.reference.operations import View, said_by
from gridline.errors import InvalidRequest


def strict(blueprint: Blueprint) -> Blueprint:
    """Let no view of the blueprint see a parameter that it does not know."""
    blueprint.before_request(_refuse_unknown)
    return blueprint


def _refuse_unknown() -> None:
    if not request.query_string or request.endpoint is None:
        return
    known = _known(current_app.view_functions[request.endpoint])
    for name in request.args:
        if name not in known:
            takes = f"takes {', '.join(known)}" if known else "takes none"
            raise InvalidRequest(
                f"Unknown parameter: '{name}'. Leave it out: in its address this call {takes}.",
                code="unknown_parameter",
                param=name,
            )


@lru_cache(maxsize=256)
def _known(view: View) -> tuple[str, ...]:
    """The names that the view's description gives."""
    said = said_by(view)
    return (
        tuple(parameters.name_of(key) for key in said.parameters if parameters.in_query(key)) if said else ()
    )
