"""Figures as text: amounts with their unit and to the last digit, times relative and exact, sizes, counts."""

from datetime import UTC, datetime, timedelta

from gridline.client import Limit
from gridline.clock import SystemClock
from gridline.money import credits_text

UNIT = "credits"
UNIT_HELP = "1 credit is worth 1 USD. Amounts are exact, never rounded."
PRICE_TOKENS = 1_000_000
MINUTE, HOUR, DAY = 60, 3_600, 86_400
UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1, "s"))


def now() -> datetime:
    """This instant, in UTC."""
    return SystemClock().now()


def number(amount_nanos: int) -> str:
    """An amount without its unit: every digit that is not a trailing zero, at least two after the point.

    >>> number(1_250_000_000), number(1_234), number(-12_345_000_000_000)
    ('1.25', '0.000001234', '-12,345.00')
    """
    return trimmed(credits_text(amount_nanos))


def trimmed(text: str) -> str:
    """``number`` of an amount that is the API's decimal text already; other text stays as it is."""
    whole, point, rest = text.partition(".")
    if not point or not whole.lstrip("-").isdigit():
        return text
    sign = "-" if whole.startswith("-") else ""
    return f"{sign}{int(whole.lstrip('-')):,}.{rest.rstrip('0').ljust(2, '0')}"


def amount(amount_nanos: int) -> str:
    """An amount with its unit."""
    return f"{number(amount_nanos)} {UNIT}"


def price(price_nanos: int) -> str:
    """A price per token, shown for a million of them."""
    return f"{amount(price_nanos * PRICE_TOKENS)} per million tokens"


def change(text: str) -> str:
    """The API's decimal text of what was added or taken, with its sign; nothing for none.

    >>> change("1.500000000"), change("-0.000001000"), change("0.000000000")
    ('+1.50', '-0.000001', '')
    """
    shown = trimmed(text)
    return "" if shown in ("0.00", "-0.00") else shown if shown.startswith("-") else f"+{shown}"


def instant(seconds: int) -> datetime:
    """The instant of whole Unix seconds, in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def exact(moment: datetime) -> str:
    """An instant to the second, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def relative(moment: datetime, at: datetime) -> str:
    """An instant as seen from another: ``3 min ago``, ``in 5 h``."""
    seconds = int((at - moment).total_seconds())
    if abs(seconds) < 5:  # noqa: PLR2004 - clocks of two machines differ by that much
        return "just now"
    span = next(f"{abs(seconds) // unit} {name}" for unit, name in UNITS if abs(seconds) >= unit)
    return f"{span} ago" if seconds > 0 else f"in {span}"


def duration(span: timedelta) -> str:
    """A span in its largest unit, two units where the second still matters: ``42 s``, ``1 h 5 min``."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return _two(seconds // MINUTE, "min", seconds % MINUTE if seconds < 10 * MINUTE else 0, "s")
    if seconds < DAY:
        return _two(seconds // HOUR, "h", seconds % HOUR // MINUTE, "min")
    return _two(seconds // DAY, "d", seconds % DAY // HOUR, "h")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"


def count(how_many: int, noun: str) -> str:
    """``1 line``, ``1,200 lines``."""
    return f"{how_many:,} {noun}" if how_many == 1 else f"{how_many:,} {noun}s"


def size(bytes_count: int) -> str:
    """A size in decimal units, as the limits are."""
    for factor, unit in ((1000**3, "GB"), (1000**2, "MB"), (1000, "kB")):
        if bytes_count >= factor:
            return f"{bytes_count / factor:.1f} {unit}"
    return count(bytes_count, "byte")


def limit(name: str, given: Limit) -> str:
    """What is used of a limit, and the limit, in its unit."""
    shown = [given.limit] if given.current is None else [given.current, given.limit]
    if name.endswith("_bytes"):
        return " of ".join(size(int(one)) for one in shown)
    return " of ".join(f"{one:,}" if isinstance(one, int) else f"{trimmed(one)} {UNIT}" for one in shown)
