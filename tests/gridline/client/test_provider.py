"""An identity provider as it describes itself: asked rarely, believed only as far as it may be, and never waited for long."""

from collections.abc import Callable
from typing import Any

import pytest

from gridline.client import ClientError, provider
from gridline.client.provider import DISCOVERY, Provider
from tests.identity_provider import identity_provider

ISSUER = "https://id.example"
ABOUT = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys", "token_endpoint": f"{ISSUER}/token"}
Answers = dict[str, tuple[int, dict[str, Any]]]


class Bench:
    """A provider whose answers and clock a test holds."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.asked: list[str] = []
        self.answers: Answers = {DISCOVERY: (200, ABOUT), "/keys": (200, {"keys": [{"kid": "a"}]})}
        self.provider = Provider(ISSUER, lambda: self.seconds, self.read)

    def read(self, method: str, url: str) -> tuple[int, dict[str, Any]]:
        """Answer, or be away where there is none."""
        path = url.removeprefix(ISSUER)
        self.asked.append(path)
        if path not in self.answers:
            raise provider.away("no answer")
        return self.answers[path]


@pytest.fixture
def bench() -> Bench:
    """One that answers well."""
    return Bench()


def refused(asks: Callable[[], object]) -> str:
    """The words of the error that it is."""
    with pytest.raises(ClientError) as caught:
        asks()
    assert caught.value.code == "provider_unreachable"
    return caught.value.message


def test_it_is_asked_once_an_hour(bench: Bench) -> None:
    """What is known is not asked for again until it is an hour old."""
    for _ in range(3):
        assert bench.provider.keys("a") == [{"kid": "a"}]
        assert bench.provider.address("token_endpoint") == f"{ISSUER}/token"
    assert bench.asked == [DISCOVERY, "/keys"]
    bench.seconds += 3_601
    bench.provider.keys("a")
    assert bench.asked == [DISCOVERY, "/keys"] * 2


def test_a_new_key_is_looked_for_once_a_minute(bench: Bench) -> None:
    """An id that is not known makes it ask again, but however many ids are made up only once a minute."""
    bench.provider.keys("a")
    for made_up in "bcd":
        assert bench.provider.keys(made_up) == []
    assert bench.asked.count("/keys") == 1
    bench.seconds += 61
    bench.answers["/keys"] = (200, {"keys": [{"kid": "b"}, "x"]})
    assert bench.provider.keys("b") == [{"kid": "b"}]
    assert bench.provider.keys(None) == [{"kid": "b"}]
    assert bench.provider.keys("c") == []
    assert bench.asked.count("/keys") == 2


def test_a_failed_look_for_a_new_key_keeps_the_old_ones(bench: Bench) -> None:
    """A made-up key id while the provider is away locks out nobody whose key is known."""
    bench.provider.keys("a")
    bench.seconds += 61
    del bench.answers["/keys"]
    refused(lambda: bench.provider.keys("b"))
    assert bench.provider.keys("a") == [{"kid": "a"}]


def test_who_asks_just_after_a_failure_is_told_at_once(bench: Bench) -> None:
    """While it is away it is asked once in five seconds, and again after that."""
    bench.answers.pop(DISCOVERY)
    for _ in range(3):
        assert "no answer" in refused(bench.provider.about)
    assert bench.asked == [DISCOVERY]
    bench.seconds += 6
    bench.answers[DISCOVERY] = (200, ABOUT)
    assert bench.provider.about() == ABOUT


@pytest.mark.parametrize(
    "about",
    [
        (200, ABOUT | {"issuer": f"{ISSUER}/"}),
        (200, ABOUT | {"issuer": "https://evil.example"}),
        (200, {"jwks_uri": f"{ISSUER}/keys"}),
        (200, ABOUT | {"jwks_uri": "http://id.example/keys"}),
        (200, ABOUT | {"jwks_uri": None}),
        (500, ABOUT),
    ],
)
def test_what_it_says_of_itself_must_be_credible(bench: Bench, about: tuple[int, dict[str, Any]]) -> None:
    """Another issuer's words, a plain address for keys and an error page are no description; no key comes of them."""
    bench.answers[DISCOVERY] = about
    refused(lambda: bench.provider.keys("a"))
    assert bench.asked == [DISCOVERY]


@pytest.mark.parametrize("url", ["http://id.example/token", "https://", "ftp://id.example/x", 7, None])
def test_a_plain_address_is_not_gone_to(bench: Bench, url: object) -> None:
    """Codes and secrets go over https, or to this machine."""
    bench.answers[DISCOVERY] = (200, ABOUT | {"token_endpoint": url})
    assert "token_endpoint" in refused(lambda: bench.provider.address("token_endpoint"))


@pytest.mark.parametrize("keys", [(200, {"keys": "a"}), (200, {}), (404, {"keys": []})])
def test_keys_must_be_keys(bench: Bench, keys: tuple[int, dict[str, Any]]) -> None:
    """An answer that holds no list of keys is a failure, not an empty list."""
    bench.answers["/keys"] = keys
    refused(lambda: bench.provider.keys("a"))


def test_an_answer_is_read_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real one is read; what is too large, no JSON, a redirect or nobody's is told without the words that were sent."""
    with identity_provider() as real:
        found = Provider(real.url)
        assert [one["kid"] for one in found.keys("first")] == ["first"]
        assert found.address("token_endpoint") == f"{real.url}/token"
        status, body = provider.read_json("POST", f"{real.url}/token", data={"code": "secret-code"})
        assert (status, body) == (400, {"error": "invalid_grant"})
        missing = refused(lambda: provider.read_json("GET", f"{real.url}/nothing?code=secret-code"))
        assert "404" in missing
        with monkeypatch.context() as patch:
            patch.setattr(provider, "BYTES_MAX", 10)
            assert "too large" in refused(lambda: provider.read_json("GET", f"{real.url}/keys"))
    gone = refused(lambda: provider.read_json("GET", f"{real.url}/keys?code=secret-code"))
    assert "secret-code" not in missing + gone
