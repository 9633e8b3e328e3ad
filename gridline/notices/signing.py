"""Signatures as Standard Webhooks has them: what ``client.webhooks.unwrap`` of OpenAI's SDKs verifies."""

import base64
import hmac
import secrets
from collections.abc import Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """A fresh secret: ``whsec_`` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers(event_id: str, *, timestamp: int, body: bytes, keys: Sequence[str]) -> dict[str, str]:
    """The headers that prove who sent the body and when; several secrets give several signatures, newest first.

    ``timestamp`` is the Unix seconds of this attempt; receivers refuse old ones, so it is not the event's own time.
    """
    signed = f"{event_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(key, signed) for key in keys),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
