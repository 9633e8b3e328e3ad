"""ID tokens that must open nothing, each wrong in one way."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

from joserfc.jwk import RSAKey

from gridline import limits
from tests.identity_provider import CLIENT_ID, IdentityProvider, rsa


def unsigned(provider: IdentityProvider) -> str:
    """A token that asks for no signature."""
    return f"{_part({'alg': 'none'})}.{_part(provider.claims())}."


def by_public_key(provider: IdentityProvider) -> str:
    """A token whose shared secret is the provider's public key."""
    signed = f"{_part({'alg': 'HS256', 'kid': 'first'})}.{_part(provider.claims())}"
    digest = hmac.new(rsa("first").as_pem(private=False), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def own_key(provider: IdentityProvider) -> str:
    """A token that brings the key that it is signed with."""
    key = rsa("foreign")
    header = {"alg": "RS256", "kid": "first", "jwk": key.as_dict(private=False)}
    signed = f"{_part(header)}.{_part(provider.claims())}"
    return f"{signed}.{provider.id_token(key=key).rpartition('.')[2]}"


def changed(provider: IdentityProvider) -> str:
    """A good token whose claims were written anew."""
    header, _, signature = provider.id_token().split(".")
    return f"{header}.{_part(provider.claims(sub='admin'))}.{signature}"


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def claiming(**claims: Any) -> Callable[[IdentityProvider], str]:
    """A token that is well signed and says that."""
    return lambda provider: provider.id_token(**claims)


def aged(seconds: int, lasts: int) -> Callable[[IdentityProvider], str]:
    """A token that was made so long ago and lasts so long."""
    return lambda provider: provider.id_token(
        iat=int(time.time()) - seconds, exp=int(time.time()) - seconds + lasts
    )


FORGED: dict[str, Callable[[IdentityProvider], str]] = {
    "no token": lambda provider: "x",
    "empty parts": lambda provider: "..",
    "no text": lambda provider: "ä.ä.ä",
    "unsigned": unsigned,
    "by the public key": by_public_key,
    "with its own key": own_key,
    "changed": changed,
    "another's key under the right name": lambda provider: provider.id_token(
        key=RSAKey.import_key(rsa("foreign").as_dict(private=True) | {"kid": "first"})
    ),
    "a key that nobody knows": lambda provider: provider.id_token(key=rsa("foreign")),
    "another issuer": claiming(iss="https://id.example"),
    "the issuer with a slash": lambda provider: provider.id_token(iss=f"{provider.url}/"),
    "no issuer": claiming(iss=None),
    "another audience": claiming(aud="somebody-else"),
    "no audience": claiming(aud=None),
    "several audiences, for none of them": claiming(aud=[CLIENT_ID, "other"]),
    "given to another": claiming(aud=[CLIENT_ID, "other"], azp="other"),
    "given to another alone": claiming(azp="other"),
    "expired": aged(200, 100),
    "no end": claiming(exp=None),
    "not yet": claiming(iat=int(time.time()) + 3600),
    "no beginning": claiming(iat=None),
    "made long ago": aged(limits.ID_TOKEN_SECONDS_MAX + 100, 86_400),
    "another nonce": claiming(nonce="m"),
    "no nonce": claiming(nonce=None),
    "no subject": claiming(sub=None),
    "empty subject": claiming(sub=""),
    "a subject that is no name": claiming(sub="a\0b"),
    "a long subject": claiming(sub="x" * 256),
    "no e-mail": claiming(email=None),
    "no address": claiming(email="ann"),
}
