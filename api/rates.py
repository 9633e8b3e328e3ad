"""How much may come in a short time: requests, bytes, messages of an account, wrong tokens and sign-ins from one address.

Counted in the storage that GRIDLINE_RATE_STORAGE names; memory:// counts in this process alone.
"""

import ipaddress
import math
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256

from flask import Flask, Response, g, request
from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute

from api.windows import Use, Windows
from gridline import limits
from gridline.errors import RateExceeded
from gridline.settings import settings
from gridline.telemetry import metrics

_MORE = "To ask for more, write to the operator."


@dataclass(frozen=True)
class Rate:
    """One kind of limit: its name in metrics, its window, and how a refusal speaks of it."""

    name: str
    window: type[RateLimitItem]
    limit_name: str
    unit: str
    meaning: str
    advice: str


REQUESTS = Rate(
    "requests", RateLimitItemPerMinute, "requests_per_minute", "requests",
    "requests of your account in a minute", f"A poll a second for each open batch always fits. {_MORE}",
)  # fmt: skip
UPLOADS = Rate(
    "uploads", RateLimitItemPerHour, "uploaded_bytes_per_hour", "bytes",
    "bytes uploaded by your account in an hour", _MORE,
)  # fmt: skip
DOWNLOADS = Rate(
    "downloads", RateLimitItemPerHour, "downloaded_bytes_per_hour", "bytes",
    "bytes downloaded by your account in an hour", _MORE,
)  # fmt: skip
ESTIMATES = Rate(
    "estimates", RateLimitItemPerMinute, "estimates_per_minute", "estimates",
    "estimates of your account in a minute", f"An estimate reads the whole file. {_MORE}",
)  # fmt: skip
MESSAGES = Rate(
    "messages", RateLimitItemPerHour, "messages_per_hour", "messages",
    "messages of your account in an hour", "Put what belongs together into one message.",
)  # fmt: skip
WEBHOOK_TESTS = Rate(
    "webhook_tests", RateLimitItemPerMinute, "webhook_tests_per_minute", "tests",
    "test events of your account in a minute", "The deliveries of the webhook say what came of those before.",
)  # fmt: skip
MAIL_CODES = Rate(
    "mail_codes", RateLimitItemPerHour, "mail_codes_per_hour", "codes",
    "codes mailed to you in an hour", "The newest code is the one that works: look for it, also among unwanted mail.",
)  # fmt: skip
WRONG_TOKENS = Rate(
    "wrong_tokens", RateLimitItemPerMinute, "wrong_tokens_per_minute", "requests",
    "requests with a wrong API key from your address in a minute", "Check the key: a good one is always let in.",
)  # fmt: skip
SIGN_INS_OF_ADDRESS = Rate(
    "sign_ins_of_address", RateLimitItemPerMinute, "sign_ins_of_address_per_minute", "sign-ins",
    "sign-ins from your address in a minute", "A session lasts for days: sign in once and keep it.",
)  # fmt: skip
SIGN_INS_OF_EMAIL = Rate(
    "sign_ins_of_email", RateLimitItemPerMinute, "sign_ins_of_email_per_minute", "sign-ins",
    "sign-ins with this e-mail in a minute", "Your sessions and tokens go on as before.",
)  # fmt: skip
SIGN_UPS_OF_ADDRESS = Rate(
    "sign_ups_of_address", RateLimitItemPerHour, "sign_ups_of_address_per_hour", "sign-ups",
    "sign-ups from your address in an hour", _MORE,
)  # fmt: skip
SIGN_UPS_OF_EMAIL = Rate(
    "sign_ups_of_email", RateLimitItemPerHour, "sign_ups_of_email_per_hour", "sign-ups",
    "sign-ups with this e-mail in an hour", "If you have signed up before, sign in.",
)  # fmt: skip


@cache
def windows() -> Windows:
    """This process's windows."""
    return Windows(settings().rate_storage)


def install(app: Flask) -> None:
    """Show on every answer to a known token what is left.

    Raises:
        SettingInvalid: the storage of the settings cannot be used.
    """
    windows()
    app.after_request(_show)


def admit_request(account_id: str, per_minute: int) -> None:
    """Count a request of an account, whatever it asks for.

    Raises:
        RateExceeded: it had its requests of this minute.
    """
    item = _item(REQUESTS, per_minute)
    fits = windows().take(item, account_id)
    use = g.rate = windows().look(item, account_id)
    if not fits and use is not None:
        raise _exceeded(REQUESTS, use)


def count_wrong_token() -> None:
    """Count a request that no token opened, so that guessing is slow. Good tokens never come here.

    Raises:
        RateExceeded: too many from this address within the minute.
    """
    _take(WRONG_TOKENS, _network(request.remote_addr), limits.WRONG_TOKENS_PER_MINUTE_MAX)


def admit_sign_in(email: str) -> None:
    """Count a sign-in before its password is looked at, right or wrong, so that guessing is slow.

    Raises:
        RateExceeded: too many from this address, or with this e-mail, within the minute.
    """
    _take(SIGN_INS_OF_ADDRESS, _network(request.remote_addr), limits.SIGN_INS_OF_ADDRESS_PER_MINUTE_MAX)
    _take(SIGN_INS_OF_EMAIL, _unread(email), limits.SIGN_INS_OF_EMAIL_PER_MINUTE_MAX)


def admit_identity() -> None:
    """Count a sign-in with an identity provider, before its token is looked at.

    Raises:
        RateExceeded: too many sign-ins of any kind from this address within the minute.
    """
    _take(SIGN_INS_OF_ADDRESS, _network(request.remote_addr), limits.SIGN_INS_OF_ADDRESS_PER_MINUTE_MAX)


def admit_sign_up(email: str) -> None:
    """Count a sign-up before anything is looked up, so that nobody can ask for many e-mails whether they are known.

    Raises:
        RateExceeded: too many from this address, or with this e-mail, within the hour.
    """
    _take(SIGN_UPS_OF_ADDRESS, _network(request.remote_addr), limits.SIGN_UPS_OF_ADDRESS_PER_HOUR_MAX)
    _take(SIGN_UPS_OF_EMAIL, _unread(email), limits.SIGN_UPS_OF_EMAIL_PER_HOUR_MAX)


def admit_upload(account_id: str, content_length: int | None) -> None:
    """Refuse an upload before its body is read, by the length that it announces; nothing is counted yet.

    Raises:
        RateExceeded: the account had its bytes of this hour.
    """
    use = windows().look(*_uploads(account_id), cost=content_length or 1)
    if use is not None and use.wait_seconds > 0:
        raise _exceeded(UPLOADS, use)


def count_upload(account_id: str, taken_bytes: int) -> None:
    """Count what an upload really brought, also one that was refused in the end."""
    item, key = _uploads(account_id)
    if taken_bytes == 0 or windows().take(item, key, taken_bytes):
        return
    # Uploads at the same time may together go past the limit: then it is used up.
    use = windows().look(item, key)
    if use is not None and use.remaining > 0:
        windows().take(item, key, use.remaining)


def admit_download(account_id: str, size_bytes: int) -> None:
    """Count the bytes of an answer that is about to be sent.

    Raises:
        RateExceeded: the account had its bytes of this hour.
    """
    if size_bytes > 0:
        _take(DOWNLOADS, account_id, limits.DOWNLOADED_BYTES_PER_HOUR_MAX, size_bytes)


def admit_estimate(account_id: str) -> None:
    """Count an estimate that is about to be made.

    Raises:
        RateExceeded: the account had its estimates of this minute.
    """
    _take(ESTIMATES, account_id, limits.ESTIMATES_PER_MINUTE_MAX)


def admit_message(account_id: str) -> None:
    """Count a message to the operator that is about to be stored.

    Raises:
        RateExceeded: the account had its messages of this hour.
    """
    _take(MESSAGES, account_id, limits.MESSAGES_PER_HOUR_MAX)


def admit_webhook_test(account_id: str) -> None:
    """Count a test event that is about to be sent.

    Raises:
        RateExceeded: the account had its test events of this minute.
    """
    _take(WEBHOOK_TESTS, account_id, limits.WEBHOOK_TESTS_PER_MINUTE_MAX)


def admit_mail_code(user_id: str) -> None:
    """Count a code that is about to be mailed to a user.

    Raises:
        RateExceeded: the user had the codes of this hour.
    """
    _take(MAIL_CODES, user_id, limits.MAIL_CODES_PER_HOUR_MAX)


def _uploads(account_id: str) -> tuple[RateLimitItem, str]:
    return _item(UPLOADS, limits.UPLOADED_BYTES_PER_HOUR_MAX), account_id


def _take(rate: Rate, key: str, amount: int, cost: int = 1) -> None:
    item = _item(rate, amount)
    if not windows().take(item, key, cost):
        use = windows().look(item, key, cost)
        if use is not None:
            raise _exceeded(rate, use)


@lru_cache(maxsize=256)
def _item(rate: Rate, amount: int) -> RateLimitItem:
    return rate.window(amount, namespace=f"gridline-{rate.name}")


def _unread(email: str) -> str:
    """The e-mail as a key: the storage that counts has no need to know it."""
    return sha256(email.encode()).hexdigest()


def _network(address: str | None) -> str:
    """What one guesser can call from: an IPv4 address, or the 64 bits of IPv6 that one line gets."""
    try:
        known = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    return str(known) if known.version == 4 else str(ipaddress.ip_network((known, 64), strict=False))  # noqa: PLR2004 - IP's own number


def _exceeded(rate: Rate, use: Use) -> RateExceeded:
    metrics.RATE_REFUSALS.labels(rate.name).inc()
    current = use.limit - use.remaining
    # One second more than it takes, rounded down: the window is below its limit by then, not just at it.
    seconds = math.floor(use.wait_seconds) + 1
    return RateExceeded(
        f"Rate limit reached: {current} of {use.limit} {rate.meaning}. "
        f"Try again in {_duration(seconds)}. {rate.advice}",
        limit={"name": rate.limit_name, "limit": use.limit, "current": current, "unit": rate.unit},
        wait_seconds=seconds,
    )


def _show(response: Response) -> Response:
    use: Use | None = g.get("rate")
    if use is not None:
        response.headers.extend(
            {
                "x-ratelimit-limit-requests": str(use.limit),
                "x-ratelimit-remaining-requests": str(use.remaining),
                "x-ratelimit-reset-requests": _duration(math.ceil(use.reset_seconds)),
            }
        )
    return response


def _duration(seconds: int) -> str:
    """As OpenAI writes it: 1s, 6m0s, 1h0m0s."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{text}{rest}s"
