"""Headers on every answer of the dashboard: nothing remote is loaded, nobody frames it."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Streamlit's front end needs inline styles and evaluates code; images come from here or not at all.
POLICY_PARTS = (
    "default-src 'self'",
    "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self' ws: wss:",
    "worker-src 'self' blob:",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
)
HEADERS = {
    "content-security-policy": "; ".join(POLICY_PARTS),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Batch ids stand in addresses: other sites do not get to see them.
    "referrer-policy": "same-origin",
}


class SafeHeaders:
    """ASGI middleware that sets HEADERS; websockets pass as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on and add the headers to the start of its answer."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)
