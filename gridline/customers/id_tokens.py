"""ID tokens of an OpenID Connect provider: what one must be to say who somebody is. Knows neither HTTP nor the database.

A signature is checked with a key that the provider publishes, by two algorithms only, never by what the token would like. What
is refused names the check that failed and nothing of the token.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError, MissingClaimError
from joserfc.jwk import JWKRegistry, Key

from gridline import limits
from gridline.customers import users
from gridline.customers.errors import EmailNotVerified, IdTokenRefused
from gridline.errors import InvalidRequest

ALGORITHMS = {"RS256": "RSA", "ES256": "EC"}
"""What a token may be signed with, and the kind of key for it. Neither a shared secret nor nothing at all."""
LEEWAY_SECONDS = 60
"""How far the provider's clock may be from ours."""
RSA_BITS_MIN = 2048

Keys = Callable[[str | None], Sequence[Mapping[str, Any]]]
"""The provider's public keys of an id, or all of them, as JWK objects."""

_AGAIN = "Begin to sign in again."


@dataclass(frozen=True)
class Expected:
    """What a token has to say: who made it, for whom, and for which sign-in."""

    issuer: str
    client_id: str
    nonce: str


@dataclass(frozen=True)
class Identity:
    """Somebody as the provider knows them. The subject never changes, the e-mail may."""

    issuer: str
    subject: str
    email: str


def verified(token: str, expected: Expected, keys: Keys, *, now: int) -> Identity:
    """Who the token says that somebody is, if it is the provider's, for this platform, of this sign-in and of now.

    Raises:
        IdTokenRefused: it is not.
        EmailNotVerified: it is, and the provider does not vouch for the e-mail.
    """
    claims = _signed(token, keys)
    _check(claims, expected, now)
    if claims.get("email_verified") is not True:
        raise EmailNotVerified(
            "Your identity provider does not say that your e-mail is yours. Confirm it there, then sign in again."
        )
    return Identity(expected.issuer, _subject(claims), _email(claims))


def _signed(token: str, keys: Keys) -> Mapping[str, Any]:
    """The claims of a token whose signature is the provider's."""
    # Headers that are not known here do no harm; those that must be understood are refused all the same.
    registry = jws.JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
    try:
        return jwt.decode(token, lambda made: _key(made.headers(), keys), registry=registry).claims
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # Without the cause: it may repeat the token.
        raise IdTokenRefused(
            f"This is no ID token that your identity provider has signed with {' or '.join(ALGORITHMS)}. {_AGAIN}"
        ) from None


def _key(header: Mapping[str, Any], keys: Keys) -> Key:
    """The one published key that fits the token's header."""
    # The library has looked before that the algorithm is one of ours, and the id a text.
    kind = ALGORITHMS[header["alg"]]
    found = [
        one
        for one in keys(header.get("kid"))
        if one.get("kty") == kind
        and one.get("use", "sig") == "sig"
        and one.get("alg", header["alg"]) == header["alg"]
    ]
    if len(found) != 1:
        raise IdTokenRefused(
            "The ID token is signed with a key that your identity provider does not publish, or does not name one. "
            "If it has just changed its keys, try again in a minute."
        )
    # Six bits to a letter of the modulus.
    if kind == "RSA" and len(found[0]["n"]) * 6 < RSA_BITS_MIN:
        raise IdTokenRefused(
            f"The key of the ID token is shorter than {RSA_BITS_MIN} bits. Write to the operator."
        )
    return JWKRegistry.import_key(dict(found[0]), kind)


def _check(claims: Mapping[str, Any], expected: Expected, now: int) -> None:
    registry = jwt.JWTClaimsRegistry(
        now=now,
        leeway=LEEWAY_SECONDS,
        iss={"essential": True, "value": expected.issuer},
        aud={"essential": True, "value": expected.client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        registry.validate(dict(claims))
    except ExpiredTokenError:
        raise IdTokenRefused(f"The ID token has expired. {_AGAIN}") from None
    except MissingClaimError as error:
        raise IdTokenRefused(f"The ID token lacks {error.description}. Write to the operator.") from None
    except JoseError:
        raise IdTokenRefused(
            "The ID token is of another issuer, for another client, or not valid at this time. "
            f"{_AGAIN} If it goes on, write to the operator."
        ) from None
    party, several = claims.get("azp"), isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (party is not None or several) and party != expected.client_id:
        raise IdTokenRefused(f"The ID token was given to another client. {_AGAIN}")
    if claims["iat"] < now - limits.ID_TOKEN_SECONDS_MAX - LEEWAY_SECONDS:
        raise IdTokenRefused(
            f"The ID token was made more than {limits.ID_TOKEN_SECONDS_MAX} seconds ago. {_AGAIN}"
        )
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(_bytes(nonce), _bytes(expected.nonce)):
        raise IdTokenRefused(f"The ID token's nonce is not the one of this sign-in. {_AGAIN}")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _subject(claims: Mapping[str, Any]) -> str:
    subject: str = claims["sub"]
    if not 0 < len(subject) <= limits.SUBJECT_CHARS_MAX or not subject.isprintable() or not subject.isascii():
        raise IdTokenRefused(
            f"The ID token's subject is no text of 1 to {limits.SUBJECT_CHARS_MAX} ASCII characters. Write to the operator."
        )
    return subject


def _email(claims: Mapping[str, Any]) -> str:
    try:
        return users.normal_email(claims.get("email"))
    except InvalidRequest:
        raise IdTokenRefused(
            "The ID token has no e-mail that can be used here. Let your identity provider tell it (scope 'email')."
        ) from None
