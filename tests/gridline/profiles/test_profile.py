"""The dialects as data."""

from pathlib import Path

import pytest

from gridline.errors import SettingInvalid
from gridline.profiles import profile as profiles
from gridline.profiles.profile import current, load
from tests.dialects import MADE_UP


def test_the_default_dialect_is_gridlines() -> None:
    """Both base paths, both windows, 50,000 requests and 200 MB."""
    profile = current()
    assert profile.base_paths == ("/openai/v1", "/v1")
    assert profile.windows == ("24h", "72h")
    assert (profile.file_lines_max, profile.file_bytes_max) == (50_000, 200_000_000)
    assert profile.endpoints == ("/v1/chat/completions", "/v1/embeddings")
    assert (profile.extension, profile.price_percent, profile.storing_fails) == ("gridline", 100, "file")


def test_the_other_dialect_is_a_file_too() -> None:
    """Gridport has one base path, one window, lower caps, half the price, and four endpoints."""
    profile = load("gridport")
    assert (profile.base_paths, profile.windows, profile.extension) == (("/v1",), ("24h",), "tf")
    assert (profile.file_lines_max, profile.file_bytes_max) == (10_000, 100_000_000)
    assert profile.endpoints == (
        "/v1/chat/completions",
        "/v1/embeddings",
        "/v1/responses",
        "/v1/messages",
    )
    assert (profile.price_percent, profile.listed_batch_prices, profile.storing_fails) == (50, True, "line")
    assert (profile.batch_facts, profile.batch_constants) == (("cost",), (("pricing_tier", "batch"),))


@pytest.mark.parametrize("name", ["nothing", "../settings", ""])
def test_an_unknown_dialect_names_the_known_ones(name: str) -> None:
    """A wrong GRIDLINE_PROFILE stops the process with a sentence that helps."""
    with pytest.raises(SettingInvalid, match="gridline, gridport"):
        load(name)


@pytest.mark.parametrize(
    ("line", "other", "words"),
    [
        ('windows = ["72h"]', 'windows = ["48h"]', "windows must be among 24h, 72h"),
        ('windows = ["72h"]', "windows = []", "windows must be among"),
        ('endpoints = ["/v1/responses"]', 'endpoints = ["/v1/images"]', "endpoints must be among"),
        ("file_lines_max = 3", "file_lines_max = 50_001", "beyond the file limits"),
        ("file_bytes_max = 2_000", "file_bytes_max = 200_000_001", "beyond the file limits"),
        ('storing_fails = "file"', 'storing_fails = "batch"', "storing_fails must be among file, line"),
        ('batch_facts = ["hold", "cost"]', 'batch_facts = ["secret"]', "batch_facts must be among"),
        ("price_percent = 150", "price_percent = 0", "at least 1 percent"),
        ('base_paths = ["/made/up/v2"]', "base_paths = []", "needs a base path"),
        ("price_percent = 150", "", "price_percent"),
        ("price_percent = 150", "price_percent = 150\ncolour = 1", "colour"),
    ],
)
def test_a_dialect_that_the_platform_cannot_bear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, other: str, words: str
) -> None:
    """A profile that is wrong stops the process, and the sentence says which key is it."""
    monkeypatch.setattr(profiles, "FOLDER", tmp_path)
    (tmp_path / "made_up.toml").write_text(MADE_UP.replace(line, other), encoding="utf-8")
    load.cache_clear()
    with pytest.raises(SettingInvalid, match="'made_up'") as caught:
        load("made_up")
    assert words in caught.value.message
