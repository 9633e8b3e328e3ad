"""Settings: read once from GRIDLINE_ names, typed, refused when unknown or wrong."""

import dataclasses
from pathlib import Path

import pytest

from gridline.errors import SettingInvalid
from gridline.settings import Settings, SignUp, described, read_settings


def test_nothing_set_gives_the_defaults() -> None:
    """An empty environment is a working one; empty values count as absent."""
    assert read_settings({}) == Settings()
    assert read_settings({"GRIDLINE_API_PORT": ""}).api_port == 8000


def test_values_get_their_types() -> None:
    """A port is a number, a folder a path, and foreign names are left alone."""
    read = read_settings(
        {"GRIDLINE_API_PORT": "9000", "GRIDLINE_STATE_DIR": "/srv/gridline", "HOME": "/nowhere"}
    )
    assert read.api_port == 9000
    assert read.state_dir == Path("/srv/gridline")


def test_a_misspelt_name_is_refused() -> None:
    """A setting that nobody reads stops the start, by name."""
    with pytest.raises(SettingInvalid, match="GRIDLINE_API_PROT"):
        read_settings({"GRIDLINE_API_PROT": "9000"})


def test_a_wrong_value_is_refused_with_name_and_value() -> None:
    """The message names the setting, the type and what was found."""
    with pytest.raises(SettingInvalid, match=r"GRIDLINE_API_PORT must be a int.*'lots'"):
        read_settings({"GRIDLINE_API_PORT": "lots"})


def test_a_choice_is_one_of_its_words() -> None:
    """Sign-up is open or closed; anything else is refused with both."""
    assert read_settings({"GRIDLINE_SIGN_UP": "closed"}).sign_up is SignUp.CLOSED
    with pytest.raises(SettingInvalid, match="GRIDLINE_SIGN_UP must be open or closed, got 'maybe'"):
        read_settings({"GRIDLINE_SIGN_UP": "maybe"})


def test_settings_are_frozen() -> None:
    """No code changes a setting after it was read."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().api_port = 1  # type: ignore[misc]


def test_a_secret_comes_from_its_setting_or_its_file(tmp_path: Path) -> None:
    """The environment wins over the generated file; neither is an error that says what to do."""
    base = Settings(state_dir=tmp_path)
    with pytest.raises(SettingInvalid, match="make up"):
        base.secret("token_pepper")
    base.secrets_dir.mkdir()
    (base.secrets_dir / "token_pepper").write_text("from-file\n")
    assert base.secret("token_pepper") == "from-file"
    assert dataclasses.replace(base, token_pepper="given").secret("token_pepper") == "given"


def test_addresses_follow_from_ports_and_lose_their_slash() -> None:
    """A public URL that was set is used; otherwise it is loopback with the port."""
    read = read_settings({"GRIDLINE_API_PORT": "8123", "GRIDLINE_DASHBOARD_URL": "https://pages.example/"})
    assert read.public_api_url == "http://127.0.0.1:8123"
    assert read.public_dashboard_url == "https://pages.example"


def test_every_setting_says_what_it_means() -> None:
    """Each one has a sentence, so that the docs can be checked against it."""
    rows = described()
    assert len(rows) == len(dataclasses.fields(Settings))
    assert [name for name, _, meaning in rows if not meaning.endswith(".")] == []


def test_secrets_are_not_shown_with_the_settings() -> None:
    """Whoever prints the settings, or an error that holds them, sees no password, pepper or client secret."""
    told = {
        name: f"hush-{name}"
        for name in ("oidc_client_secret", "token_pepper", "airflow_password", "password")
    }
    assert "hush" not in repr(dataclasses.replace(Settings(), **told))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("issuer", "usable"),
    [
        ("https://id.example", True),
        ("https://id.example/realms/one/", True),
        ("http://127.0.0.1:9000", True),
        ("http://localhost:9000/", True),
        ("http://id.example", False),
        ("http://127.0.0.1.id.example", False),
        ("http://127.0.0.1@id.example", False),
        ("https://user:password@id.example", False),
        ("https://id.example?tenant=a", False),
        ("https://id.example#a", False),
        ("id.example", False),
        ("https://", False),
    ],
)
def test_an_identity_provider_is_one_that_can_be_believed(issuer: str, usable: bool) -> None:
    """Its keys come over https, or from this machine; anything else stops the start, by the setting's name."""
    config = read_settings({"GRIDLINE_OIDC_ISSUER": issuer, "GRIDLINE_OIDC_CLIENT_ID": "gridline"})
    if usable:
        assert config.sign_in_provider == issuer
    else:
        with pytest.raises(SettingInvalid, match="GRIDLINE_OIDC_ISSUER"):
            _ = config.sign_in_provider


def test_an_identity_provider_needs_a_client() -> None:
    """Without an issuer there is no provider; an issuer alone is an error that names what is missing."""
    assert Settings().sign_in_provider == ""
    with pytest.raises(SettingInvalid, match="GRIDLINE_OIDC_CLIENT_ID"):
        _ = read_settings({"GRIDLINE_OIDC_ISSUER": "https://id.example"}).sign_in_provider
