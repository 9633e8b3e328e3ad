"""Passwords: what is taken, how it is stored, and that nothing tells an unknown user from a wrong password."""

from collections.abc import Iterator
from threading import BoundedSemaphore

import pytest
from argon2 import PasswordHasher

from gridline import limits
from gridline.customers import passwords
from gridline.errors import InvalidRequest, Unavailable

LONG = "correct horse battery staple"
REAL = passwords.hasher


def test_a_password_opens_only_its_own_hash() -> None:
    """The stored text holds neither the password nor twice the same, and only the password fits it."""
    first, second = passwords.hashed(LONG), passwords.hashed(LONG)
    assert first != second
    assert LONG not in first
    assert passwords.matches(first, LONG)
    assert not passwords.matches(first, LONG + " ")
    assert not passwords.matches("", LONG)


def test_production_hashes_dearly() -> None:
    """Without injection a hash is argon2id with at least RFC 9106's parameters for little memory."""
    made_by = REAL()
    assert made_by.type.name == "ID"
    assert (made_by.time_cost, made_by.memory_cost) >= (3, 64 * 1024)


def test_nobody_costs_what_somebody_costs(monkeypatch: pytest.MonkeyPatch, hasher: PasswordHasher) -> None:
    """For an e-mail without a user one hash of today's cost is verified too, and never fits."""
    verified: list[str] = []

    class Counting(PasswordHasher):
        """Notes what it verifies."""

        def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # type: ignore[override]  # noqa: A002 - the base class's name
            verified.append(str(hash))
            return hasher.verify(hash, password)

    counting = Counting(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: counting)
    assert not passwords.matches(None, "nobody's")
    assert not passwords.matches(passwords.hashed(LONG), "nobody's")
    decoy, real = verified
    assert decoy.split("$")[:4] == real.split("$")[:4]


def test_the_form_of_a_letter_does_not_matter() -> None:
    """What looks the same is the same, whichever way a keyboard writes it (NFKC)."""
    assert passwords.chosen("Cafe\N{COMBINING ACUTE ACCENT} on the hill") == passwords.chosen(
        "Café on the hill"
    )


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("x" * 11, "string_below_min_length"),
        ("x" * 257, "string_above_max_length"),
        ("\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 100, "string_above_max_length"),
        ("half a character \ud800", "invalid_value"),
        ("with a NUL \0 in it", "invalid_value"),
        (123456789012, "invalid_type"),
        (None, "invalid_type"),
    ],
)
def test_what_is_no_password_is_refused_by_its_name(value: object, code: str) -> None:
    """12 to 256 characters of text, counted in their normal form; the refusal never repeats the password."""
    with pytest.raises(InvalidRequest) as caught:
        passwords.chosen(value)
    assert (caught.value.code, caught.value.param) == (code, "password")
    assert str(value) not in caught.value.message


def test_the_bounds_themselves_are_fine() -> None:
    """Exactly 12 and exactly 256 characters are taken; at signing in a short one is simply wrong, not refused."""
    for length in (limits.PASSWORD_CHARS_MIN, limits.PASSWORD_CHARS_MAX):
        assert passwords.chosen("x" * length)
    assert passwords.read("short") == "short"


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All places for hashing are taken."""
    full = BoundedSemaphore(1)
    full.acquire()
    monkeypatch.setattr(passwords, "_AT_ONCE", full)
    monkeypatch.setattr(limits, "PASSWORD_HASH_WAIT_SECONDS", 0.01)
    yield
    full.release()


def test_a_rush_waits_and_then_hears_of_it(busy: None) -> None:
    """More hashes at once than memory is set aside for are a 503 that trying again heals."""
    with pytest.raises(Unavailable):
        passwords.hashed(LONG)
    with pytest.raises(Unavailable):
        passwords.matches(None, LONG)


def test_a_wrong_password_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sign-ins fail, the next one is served."""
    monkeypatch.setattr(passwords, "_AT_ONCE", BoundedSemaphore(1))
    stored = passwords.hashed(LONG)
    for _ in range(3):
        assert not passwords.matches(stored, "wrong")
        assert not passwords.matches("no hash", "wrong")
    assert passwords.matches(stored, LONG)


def test_a_hash_of_other_parameters_is_known_as_such(hasher: PasswordHasher) -> None:
    """When parameters change, old hashes still open and are told apart."""
    old = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1).hash(LONG)
    assert passwords.matches(old, LONG)
    assert passwords.outdated(old)
    assert not passwords.outdated(passwords.hashed(LONG))
