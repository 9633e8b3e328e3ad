"""Who may see and who may act: every page asks for one of two rights on ``Gridline``, and says no in a sentence."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from flask import g, redirect, request
from flask_appbuilder import expose

from gridline.errors import GridlineError, NotPermitted

RESOURCE = "Gridline"
READ = "read"
EDIT = "edit"
Handler = TypeVar("Handler", bound=Callable[..., Any])


def shows(url: str) -> Callable[[Handler], Handler]:
    """A page at this address, for those who may look."""
    return _at(url, "GET", READ)


def acts(url: str) -> Callable[[Handler], Handler]:
    """An action at this address, for those who may change things; the application asks for its CSRF token before."""
    return _at(url, "POST", EDIT)


def may(view: Any, right: str) -> bool:
    """Whether the signed-in person has this right."""
    return bool(view.appbuilder.sm.has_access(f"can_{right}", RESOURCE))


def actor() -> str:
    """Who acts, as the audit names it."""
    return f"operator:{g.user.username}"


def sign_in_page() -> str:
    """Where whoever is not signed in does that; it leads back here."""
    from airflow.api_fastapi.app import get_auth_manager

    # An action's own address shows nothing: after signing in it is sent again from its page.
    back = request.url if request.method == "GET" else request.referrer or request.url_root
    return str(get_auth_manager().get_url_login(next_url=back))


def _at(url: str, method: str, right: str) -> Callable[[Handler], Handler]:
    """Nothing has an address without its guard."""

    def placed(act: Handler) -> Handler:
        found: Handler = expose(url, methods=(method,))(_guarded(act, right))
        return found

    return placed


def _guarded(act: Callable[..., Any], right: str) -> Callable[..., Any]:
    @functools.wraps(act)
    def guarded(view: Any, *args: Any, **kwargs: Any) -> Any:
        if g.user is None or not g.user.is_authenticated:
            return redirect(sign_in_page())
        try:
            if not may(view, right):
                raise NotPermitted(
                    f"Your Airflow role does not have 'can {right}' on '{RESOURCE}'. Ask whoever gives out the roles."
                )
            return act(view, *args, **kwargs)
        except GridlineError as error:
            return view.refusal(error)

    # What Flask-AppBuilder names permissions by.
    guarded._permission_name = right  # type: ignore[attr-defined]  # noqa: SLF001  # its own word for it
    return guarded
