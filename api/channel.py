"""A connection of waitress's that lets large bodies flow, says goodbye before it closes, and ends with who dawdles.

waitress gives a request to a thread once its body is whole. That is right for slow clients, and costs a fast one
twice the time: its bytes are written to a temporary file first. So a body that has grown large flows to its thread
while it arrives, for a few connections at a time; all others wait as waitress has it.
"""

import socket
import time
from typing import Any

from waitress.channel import HTTPChannel

from api.flow import Flow
from api.heads import Head, JsonErrorTask

FLOWS_MAX = 4
"""Threads that may wait for a client's bytes: a third of all, so that slow uploads leave the others alone."""
FLOW_FROM_BYTES = 256 * 1024
FLOW_UNTIL_BYTES = 2 * 1024 * 1024
"""A body that found no free place by then is received as a whole first."""
PACE_SECONDS = 60
PACE_BYTES_PER_SECOND = 1_000
"""A client in the middle of a request or an answer that moves less over so long a time is cut off."""
SEND_BYTES = 256 * 1024
"""Read for one send. waitress reads as much as the socket may ever hold, megabytes, and mostly for nothing."""
LINGER_SECONDS = 60
"""So long a client may go on sending after the last answer, before the connection is cut."""


class Channel(HTTPChannel):  # type: ignore[misc] # waitress ships no types
    """One connection. All but ``service`` and ``send`` run in the loop's thread only."""

    error_task_class = JsonErrorTask
    parser_class = Head

    # waitress's own, of which mypy knows nothing.
    request: Any
    requests: list[Any]
    close_when_flushed: bool

    def __init__(self, *args: Any, **named: Any) -> None:
        self._flow: Flow | None = None
        self._lost = False
        self._lingering_since: float | None = None
        self._moved = 0
        self._watched_since = time.monotonic()
        super().__init__(*args, **named)
        self.sendbuf_len = SEND_BYTES

    @property
    def flows(self) -> bool:
        """Whether a thread may wait for what the client still has to send."""
        return self._flow is not None and bool(self.requests)

    def readable(self) -> bool:
        """Whether to receive."""
        if self._lingering_since is not None:
            return True
        if self._flow is not None and not (self.will_close or self.close_when_flushed):
            return self._flow.has_room()
        return bool(super().readable())

    def received(self, data: bytes) -> bool:
        """Take received bytes."""
        self._moved += len(data)
        if self._lingering_since is not None:
            return False
        if self._flow is None:
            super().received(data)
            self._begin_flow()
        else:
            rest = self._feed(self._flow, data)
            if rest:
                super().received(rest)
        return True

    def _begin_flow(self) -> None:
        """Give the request to a thread now, if its body has grown large and there is a place."""
        request = self.request
        body = request and request.body_rcv
        if not body or not FLOW_FROM_BYTES <= len(body) <= FLOW_UNTIL_BYTES:
            return
        with self.requests_lock:
            closing = self.will_close or self.close_when_flushed
            if closing or self.requests or sum(one.flows for one in self._all()) >= FLOWS_MAX:
                return
            whole = body.getbuf()
            self._flow = body.buf = Flow(whole.get(len(whole)), self.server.pull_trigger)
            whole.close()
            self.requests.append(request)
        self.server.add_task(self)

    def _feed(self, flow: Flow, data: bytes) -> bytes:
        """Give the flowing body its bytes; returns those of a following request."""
        with self.requests_lock:
            if self.will_close or self.close_when_flushed:
                return b""
            request = self.request
            taken: int = request.received(data)
            if not request.completed:
                return b""
            self.request = self._flow = None
            self.sent_continue = False
            if request.error:
                # Where the next request would begin is unknown. Its thread, if it still runs, closes at its end.
                self._lost = True
                self.close_when_flushed = not self.requests
        flow.end()
        return b"" if request.error else data[taken:]

    def service(self) -> None:
        """Handle the next request, in a thread."""
        super().service()
        with self.requests_lock:
            if self._lost:
                self.close_when_flushed = True
                self.requests = []
        if self._lost and self.connected:
            self.server.pull_trigger()

    def writable(self) -> bool:
        """Whether there is something to send, or a close to be done."""
        return bool(self.will_close if self._lingering_since is not None else super().writable())

    def send(self, data: bytes, do_close: bool = True) -> int:  # noqa: FBT001, FBT002 - waitress's signature
        """Send what the socket takes; returns how much."""
        sent: int = super().send(data, do_close)
        self._moved += sent
        return sent

    def handle_write(self) -> None:
        """Send what waits, then close if that was the last.

        Closing while the client still sends would reset the connection, and the answer would be lost on its way.
        So our side ends first, and what comes is dropped until the client has closed too.
        """
        if self.will_close or not self.close_when_flushed:
            super().handle_write()
            return
        self._flush_exception(self._flush_some_if_lockable)
        if self.will_close:
            self.handle_close()
        elif self.connected and not self.total_outbufs_len:
            self._lingering_since = time.monotonic()
            self.socket.shutdown(socket.SHUT_WR)

    def handle_close(self) -> None:
        """Close; a thread that waits for the body learns that no more comes."""
        flow, self._flow = self._flow, None
        super().handle_close()
        if flow is not None:
            flow.end()

    def watch(self, now: float) -> None:
        """Close if the client dawdles; called every few seconds with monotonic time.

        At once, not by ``will_close``: that waits until the client reads, which it may never do.
        """
        if self._lingering_since is not None:
            if now - self._lingering_since >= LINGER_SECONDS:
                self.handle_close()
            return
        for_us = self.requests and not self.total_outbufs_len and not (self._flow and self._flow.has_room())
        under_way = self.request is not None or self.total_outbufs_len
        if under_way and not for_us:
            if now - self._watched_since < PACE_SECONDS:
                return
            if self._moved < PACE_SECONDS * PACE_BYTES_PER_SECOND:
                self.handle_close()
        self._watched_since, self._moved = now, 0

    def _all(self) -> "list[Channel]":
        return list(self.server.active_channels.values())
