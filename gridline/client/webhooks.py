"""The client's calls about webhooks: ``client.webhooks.create(…)`` and so on."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from gridline.client.answers import page_of, segment
from gridline.client.objects import Json, Page

Read = TypeVar("Read")

PATH = "/gridline/v1/webhooks"


class Send(Protocol):
    """How the client makes a call."""

    def __call__(self, method: str, path: str, read: Callable[[Json], Read], **more: Any) -> Read:
        """The answer, read by ``read``."""


class Webhooks:
    """One method a call; a webhook and a delivery are the API's own objects."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def every(self) -> tuple[Json, ...]:
        """All of the account's webhooks, newest first."""
        return self._send("GET", PATH, page_of(dict)).data

    def create(self, url: str, events: tuple[str, ...] = ()) -> Json:
        """Have an address told of these events (none: all); ``secret`` is in this answer only."""
        body: dict[str, Any] = {"url": url} | ({"events": list(events)} if events else {})
        return self._send("POST", PATH, dict, json=body)

    def change(self, webhook_id: str, **wanted: Any) -> Json:
        """Set ``url``, ``events`` or ``disabled``; what is not named stays."""
        return self._send("POST", f"{PATH}/{segment(webhook_id)}", dict, json=wanted)

    def delete(self, webhook_id: str) -> Json:
        """Delete one with its deliveries."""
        return self._send("DELETE", f"{PATH}/{segment(webhook_id)}", dict)

    def rotate(self, webhook_id: str) -> Json:
        """Make a new secret, in this answer only; the old one signs beside it for 24 hours."""
        return self._send("POST", f"{PATH}/{segment(webhook_id)}/rotate", dict)

    def test(self, webhook_id: str) -> Json:
        """Send a test event; the delivery that it makes."""
        return self._send("POST", f"{PATH}/{segment(webhook_id)}/test", dict)

    def deliveries(self, webhook_id: str, *, after: str | None = None, limit: int = 20) -> Page[Json]:
        """A page of deliveries, newest first, that follow the event ``after``."""
        params = {"limit": str(limit)} | ({"after": after} if after else {})
        return self._send("GET", f"{PATH}/{segment(webhook_id)}/deliveries", page_of(dict), params=params)
