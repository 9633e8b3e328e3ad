"""Where a webhook may go: http and https, public addresses only. Who connects uses the very address checked here.

A name is looked up anew for each sending, and one lookup serves check and connection alike, so a name that changes its
mind in between (DNS rebinding) gains nothing.
"""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from gridline import limits
from gridline.errors import SettingInvalid
from gridline.fields import short
from gridline.notices.errors import AddressRefused, HostNotFound

Address = IPv4Address | IPv6Address
Lookup = Callable[[str, int], Sequence[str]]

PORTS = {"http": 80, "https": 443}
PORT_MAX = 65_535
LOOKUP_SECONDS_MAX = 5
LOOKUPS_AT_ONCE = 64
_NAT64 = IPv6Network("64:ff9b::/96")
"""Its last 32 bits are the IPv4 address that is reached."""
_LAST_32 = 0xFFFF_FFFF


@dataclass(frozen=True)
class Target:
    """A URL in its parts, and the address to connect to."""

    scheme: str
    host: str
    port: int
    path: str
    address: str

    @property
    def url(self) -> str:
        """The URL with the address in the host's place."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @property
    def host_header(self) -> str:
        """The host as the receiver knows itself."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def lookup(host: str, port: int) -> Sequence[str]:
    """The host's addresses; what looks like a number in any notation is one, as it is for whoever connects."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return [str(one[4][0]) for one in found]


def check(url: str, *, networks: str, look: Lookup | None = None) -> Target:
    """The target of a URL that webhooks may use. ``networks`` are private ones that are allowed, as in the settings.

    Raises:
        AddressRefused: another scheme, user names, control characters, a bad port, or any address of the host that is
            private, loopback, link-local, multicast or reserved.
        HostNotFound: the host has no address, or none within 5 seconds.
    """
    parts, port = _split(url)
    host = parts.hostname or ""
    found = [ip_address(one.partition("%")[0]) for one in _timely(look or lookup, host, port)]
    if not found:
        raise HostNotFound(
            f"Invalid 'url': the host '{short(host)}' has no address. Check its name, then send it again.",
            param="url",
        )
    allowed = allowed_networks(networks)
    for address in found:
        if not public(address) and not any(address in network for network in allowed):
            raise AddressRefused(
                f"Invalid 'url': the host '{short(host)}' is not on the public internet, and webhooks go there only. "
                "Use a public address, or ask the operator to allow the network.",
                param="url",
            )
    query = f"?{parts.query}" if parts.query else ""
    return Target(parts.scheme, host, port, f"{parts.path or '/'}{query}", str(found[0]))


def public(address: Address) -> bool:
    """Whether anybody on the internet could be reached there; an IPv4 address within an IPv6 one counts, too."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or (IPv4Address(int(address) & _LAST_32) if address in _NAT64 else None)
        if inner is not None:
            return public(inner)
        # Tunnels (6to4, Teredo) end wherever the IPv4 address in them says: no receiver needs one.
        if address.is_site_local or address.sixtofour or address.teredo:
            return False
    closed = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )
    return address.is_global and not closed


@cache
def allowed_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """The private networks that the setting names.

    Raises:
        SettingInvalid: one of them is no network.
    """
    try:
        return tuple(ip_network(one.strip()) for one in text.split(",") if one.strip())
    except ValueError as error:
        raise SettingInvalid(
            f"GRIDLINE_WEBHOOK_NETWORKS must be networks like 10.1.0.0/16, separated by commas: {error}."
        ) from error


def _split(url: str) -> tuple[SplitResult, int]:
    """The URL's parts and its port.

    Raises:
        AddressRefused: it is none that webhooks may use.
    """
    if not (url.isascii() and url.isprintable()) or " " in url or "\\" in url:
        raise _wrong("holds a character that a URL must escape")
    try:
        parts = urlsplit(url)
        port = PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    except ValueError as error:
        raise _wrong("cannot be read as a URL") from error
    if parts.scheme not in PORTS:
        raise _wrong("begins with neither https:// nor http://")
    if parts.username is not None or parts.password is not None:
        raise _wrong("holds a user name")
    if not parts.hostname or not 1 <= port <= PORT_MAX:
        raise _wrong("has no host, or no port from 1 to 65535")
    if parts.fragment:
        raise _wrong("has a fragment (#), which is never sent")
    return parts, port


def _wrong(why: str) -> AddressRefused:
    return AddressRefused(
        f"Invalid 'url': it {why}. Send an address like https://example.com/hooks, at most "
        f"{limits.WEBHOOK_URL_CHARS_MAX} characters.",
        param="url",
    )


def _timely(look: Lookup, host: str, port: int) -> Sequence[str]:
    """What the lookup finds in time. Names servers that hang hold a thread of their own here, nobody else's."""
    asked: Future[Sequence[str]] = _threads().submit(look, host, port)
    try:
        return asked.result(LOOKUP_SECONDS_MAX)
    except TooLate:
        asked.cancel()
        return ()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(LOOKUPS_AT_ONCE, thread_name_prefix="lookup")
