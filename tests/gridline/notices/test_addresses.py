"""Where webhooks may go: the public internet and nowhere else, however an address is written."""

import socket

import pytest

from gridline.errors import SettingInvalid
from gridline.notices import addresses
from gridline.notices.errors import AddressRefused, HostNotFound

PUBLIC = "93.184.215.14"


def check(url: str, *found: str, networks: str = "") -> addresses.Target:
    """The target of a URL whose host has these addresses."""
    return addresses.check(url, networks=networks, look=lambda host, port: found or (PUBLIC,))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
        "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0",
        "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "100::1", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:7f00:1::", "2001:0:0:0:0:0:80ff:fffe",
    ],
)  # fmt: skip
def test_no_address_of_ours_is_reached(address: str) -> None:
    """Private, loopback, link-local, shared, multicast, reserved, also inside an IPv6 address: refused by the host's name."""
    with pytest.raises(
        AddressRefused, match=r"'hooks\.test' is not on the public internet.*operator"
    ) as refused:
        check("https://hooks.test/x?key=hidden", address)
    assert refused.value.param == "url"
    assert "hidden" not in refused.value.message
    assert address not in refused.value.message


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    """Who connects might choose that one."""
    with pytest.raises(AddressRefused):
        check("https://hooks.test/", PUBLIC, "10.0.0.1")


@pytest.mark.parametrize(
    "address", [PUBLIC, "8.8.8.8", "2606:4700:4700::1111", "::ffff:808:808", "64:ff9b::808:808"]
)
def test_public_addresses_are_reached_where_they_were_checked(address: str) -> None:
    """The target names the address, keeps path and query, and tells the receiver its own name."""
    target = check("https://hooks.test:8443/a/b?c=d", address)
    assert (target.address, target.host, target.host_header) == (address, "hooks.test", "hooks.test:8443")
    shown = f"[{address}]" if ":" in address else address
    assert target.url == f"https://{shown}:8443/a/b?c=d"
    assert check("http://hooks.test").url == f"http://{PUBLIC}:80/"
    assert check("http://hooks.test").host_header == "hooks.test"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0",
    ],
)
def test_loopback_is_refused_in_every_notation(host: str) -> None:
    """Numbers are read as the system that connects would read them."""
    with pytest.raises((AddressRefused, HostNotFound)):
        addresses.check(f"http://{host}:8000/", networks="")


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.test", "ftp://hooks.test/", "file:///etc/passwd", "gopher://hooks.test/", "//hooks.test/", "https://",
        "https:///x", "https://user@hooks.test/", "https://user:pass@hooks.test/", "https://hooks.test:0/",
        "https://hooks.test:65536/", "https://hooks.test:x/", "https://hooks.test/#part", "https://hooks.test/a b",
        "https://hooks.test/\n", "https://hooks.test/\r\nX: y", "https://hooks.test\\@127.0.0.1/", "https://häuser.test/",
        "https://[::1/", "https://hooks.test/\t",
    ],
)  # fmt: skip
def test_what_is_no_plain_http_url_is_refused(url: str) -> None:
    """Schemes, user names, fragments, control characters, bad ports: refused with an example of what is taken."""
    with pytest.raises(AddressRefused, match=r"Send an address like https://example\.com/hooks"):
        check(url)


def test_an_operator_may_open_private_networks() -> None:
    """What the setting names is reached, nothing beside it; text that is no network is refused."""
    networks = "10.1.0.0/16, fd00::/8"
    assert check("http://hooks.test/", "10.1.2.3", networks=networks).address == "10.1.2.3"
    assert check("http://hooks.test/", "fd00::1", networks=networks).address == "fd00::1"
    for address in ("10.2.0.1", "127.0.0.1"):
        with pytest.raises(AddressRefused):
            check("http://hooks.test/", address, networks=networks)
    with pytest.raises(SettingInvalid, match="GRIDLINE_WEBHOOK_NETWORKS"):
        check("http://hooks.test/", networks="10.1.0.0/99")


def test_a_host_without_an_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose lookup fails, or takes too long: that is not waited for."""

    def fails(*_: object, **__: object) -> None:
        raise socket.gaierror

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", fails)
        with pytest.raises(HostNotFound, match=r"'hooks\.test' has no address"):
            addresses.check("https://hooks.test/", networks="")
    monkeypatch.setattr(addresses, "LOOKUP_SECONDS_MAX", 0)
    with pytest.raises(HostNotFound):
        check("https://hooks.test/")
