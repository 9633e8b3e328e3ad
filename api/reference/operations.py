"""What a view says of itself: the operation that it serves, beside the view, for the document to pick up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

View = TypeVar("View", bound=Callable[..., Any])

JSON = "application/json"
FORM = "multipart/form-data"
_MARK = "gridline_operation"


@dataclass(frozen=True)
class Content:
    """A body of a request or an answer: a component of the document, and the media type that it comes in."""

    schema: str
    media_type: str = JSON


@dataclass(frozen=True)
class Operation:
    """One call of the API, in OpenAPI's terms where OpenAI has a name for it."""

    tag: str
    id: str
    summary: str
    answers: Mapping[int, Content]
    body: Content | None = None
    also: Content | None = None
    """The same answer (200) in another media type."""
    parameters: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    description: str = field(default="")


def operation(
    tag: str,
    operation_id: str,
    summary: str,
    *,
    returns: str | Mapping[int, Content],
    body: str | Content | None = None,
    also: Content | None = None,
    **more: tuple[str, ...],
) -> Callable[[View], View]:
    """Say what the view below serves; its docstring's first paragraph becomes the description.

    ``returns`` and ``body`` name components of the document (a plain name is JSON), ``also`` the answer in another
    media type. ``more`` holds
    ``parameters`` (names in ``parameters.py``), ``refuses`` (codes in ``refusals.py`` beyond those that every such
    call may get) and ``sends`` (headers in ``headers.py`` beyond those of every answer).
    """

    def mark(view: View) -> View:
        said = Operation(
            tag,
            operation_id,
            summary,
            answers={200: Content(returns)} if isinstance(returns, str) else returns,
            body=Content(body) if isinstance(body, str) else body,
            also=also,
            description=_first_paragraph(view.__doc__ or ""),
            **more,
        )
        setattr(view, _MARK, said)
        return view

    return mark


def not_described(view: View) -> View:
    """Leave a view out of the document: a page for people, no call."""
    setattr(view, _MARK, None)
    return view


def speaks(view: Callable[..., Any]) -> bool:
    """Whether the view says what it serves, or that it is left out on purpose."""
    return hasattr(view, _MARK)


def said_by(view: Callable[..., Any]) -> Operation | None:
    """The view's operation; None where there is none."""
    found: Operation | None = getattr(view, _MARK, None)
    return found


def _first_paragraph(docstring: str) -> str:
    return " ".join(docstring.strip().partition("\n\n")[0].split())
