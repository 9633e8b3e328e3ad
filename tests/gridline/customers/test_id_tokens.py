"""ID tokens that nobody signed: whatever is in them, they are refused in words of ours, and nobody is asked for odd keys."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridline.customers import id_tokens
from gridline.customers.errors import IdTokenRefused
from gridline.customers.id_tokens import Expected
from tests.identity_provider import rsa

EXPECTED = Expected("https://id.example", "gridline", "n")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
HEADERS = JSON | st.fixed_dictionaries(
    {"alg": st.sampled_from(["RS256", "ES256", "HS256", "none", "PS256"]) | JSON},
    optional={"kid": JSON, "crit": JSON, "b64": JSON, "typ": JSON, "jwk": JSON, "jku": JSON, "zip": JSON},
)


def part(value: Any) -> str:
    """One part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.thorough
@given(header=HEADERS, claims=JSON, signature=st.binary(max_size=260))
def test_no_header_breaks_anything(header: Any, claims: Any, signature: bytes) -> None:
    """Any JSON in header and claims, under any signature, is refused; a key is asked for by a text or by nothing."""
    asked: list[Any] = []

    def keys(key_id: str | None) -> list[dict[str, Any]]:
        asked.append(key_id)
        return [dict(rsa("first").as_dict(private=False))]

    token = f"{part(header)}.{part(claims)}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    with pytest.raises(IdTokenRefused) as caught:
        id_tokens.verified(token, EXPECTED, keys, now=1_767_614_400)
    assert token not in str(caught.value)
    assert caught.value.__cause__ is None
    assert all(one is None or isinstance(one, str) for one in asked)


@pytest.mark.thorough
@given(text=st.text(max_size=200) | st.text(alphabet=".eyJ=-_ \n", max_size=50))
def test_no_text_breaks_anything(text: str) -> None:
    """What is no token at all is refused as such, half characters and empty parts included."""
    with pytest.raises(IdTokenRefused):
        id_tokens.verified(text, EXPECTED, lambda _: [], now=0)


@pytest.mark.parametrize("jwk", [{}, {"n": 1}, {"n": "!" * 400, "e": "AQAB"}, {"n": "A" * 400, "e": "AQAB"}])
def test_a_key_that_is_none_is_a_refusal(jwk: dict[str, Any]) -> None:
    """A published key that cannot be read makes no fault of ours."""
    token = f"{part({'alg': 'RS256', 'kid': 'a'})}.{part({})}.c2ln"
    with pytest.raises(IdTokenRefused):
        id_tokens.verified(token, EXPECTED, lambda _: [{"kty": "RSA", "kid": "a"} | jwk], now=0)
