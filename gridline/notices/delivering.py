"""Sends what webhooks are owed: several at once, each with ten seconds in all, so that a slow receiver delays nobody.

No redirect is followed, no proxy used, and of an answer only the status is read.
"""

import asyncio
import logging
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import httpx

from gridline import __version__, limits
from gridline.db.work import unit_of_work
from gridline.notices import addresses, parcels
from gridline.notices.errors import AddressRefused, HostNotFound
from gridline.notices.parcels import Outcome, Parcel
from gridline.settings import settings
from gridline.telemetry import metrics

log = logging.getLogger(__name__)

AT_ONCE = 16
STEP_SECONDS = 30
"""After that a step claims nothing more, so that a keeper that is told to stop does."""
LOOK_AGAIN_SECONDS = 1


@dataclass(frozen=True)
class Sender:
    """How attempts are made; ``networks`` are the private ones that may be reached."""

    networks: str = ""
    seconds_max: float = limits.WEBHOOK_SECONDS_MAX
    look: addresses.Lookup | None = None

    async def send(self, parcel: Parcel) -> Outcome:
        """One attempt; whatever happens on the way is an outcome, not an error."""
        try:
            async with asyncio.timeout(self.seconds_max):
                look = partial(addresses.check, parcel.url, networks=self.networks, look=self.look)
                target = await asyncio.get_running_loop().run_in_executor(_threads(), look)
                return await _post(target, parcel)
        except TimeoutError:
            return Outcome(error="timeout")
        except AddressRefused:
            return Outcome(error="address_refused")
        except HostNotFound:
            return Outcome(error="host_not_found")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return Outcome(error="tls_error" if _of_tls(error) else "unreachable")


async def _post(target: addresses.Target, parcel: Parcel) -> Outcome:
    """The request, to the address that was checked; the name in it is for the receiver and its certificate."""
    extensions: dict[str, Any] = {"sni_hostname": target.host} if target.scheme == "https" else {}
    headers = parcel.headers | {
        "host": target.host_header,
        "content-type": "application/json",
        "user-agent": f"gridline/{__version__}",
        "connection": "close",
    }
    # A client of its own: two names behind one address never share a connection, whose certificate is one name's.
    async with (
        httpx.AsyncClient(
            verify=_certificates(),
            trust_env=False,
            follow_redirects=False,
            # Of each read and write; the deadline around this is what ends a trickle.
            timeout=limits.WEBHOOK_SECONDS_MAX,
        ) as client,
        client.stream(
            "POST", target.url, content=parcel.body, headers=headers, extensions=extensions
        ) as answer,
    ):
        return Outcome(status=answer.status_code)


@cache
def _certificates() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


@cache
def _threads() -> ThreadPoolExecutor:
    """One for each attempt under way: a lookup blocks, and gives up by itself after five seconds."""
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook")


def _of_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False


def deliver(sender: Sender | None = None) -> int:
    """Send what is due until nothing is left or half a minute is over; how many attempts were made."""
    return asyncio.run(_deliver(sender or Sender(settings().webhook_networks)))


async def _deliver(sender: Sender) -> int:
    attempts = 0
    ends = time.monotonic() + STEP_SECONDS
    flying: set[asyncio.Task[None]] = set()
    try:
        while True:
            if time.monotonic() < ends and len(flying) < AT_ONCE:
                for parcel in _claimed(AT_ONCE - len(flying)):
                    flying.add(asyncio.create_task(_attempt(sender, parcel)))
                    attempts += 1
            if not flying:
                return attempts
            done, flying = await asyncio.wait(
                flying, timeout=LOOK_AGAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            for one in done:
                one.result()
    finally:
        # The database went away: what is on its way still ends in order.
        await asyncio.gather(*flying, return_exceptions=True)


def _claimed(most: int) -> list[Parcel]:
    with unit_of_work() as work:
        return parcels.claim(work, most=most)


async def _attempt(sender: Sender, parcel: Parcel) -> None:
    try:
        outcome = await sender.send(parcel)
    except Exception as error:  # noqa: BLE001 - one that cannot be sent must not hold up the others
        # The type alone: an error's words may hold the URL, whose path may be a secret.
        log.error("Webhook %s failed with %s; it is tried again.", parcel.webhook_id, type(error).__name__)  # noqa: TRY400 - as said
        outcome = Outcome(error="unreachable")
    # A crash here sends it again when the claim lapses; receivers know it by its webhook-id.
    with unit_of_work() as work:
        parcels.note(work, parcel, outcome)
    metrics.WEBHOOK_ATTEMPTS.labels("arrived" if outcome.arrived else "failed").inc()
