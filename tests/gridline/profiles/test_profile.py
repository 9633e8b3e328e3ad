"""The dialects as data."""

import pytest

from gridline import limits
from gridline.errors import SettingInvalid
from gridline.profiles.profile import current, load


def test_the_default_dialect_is_gridlines() -> None:
    """Both base paths, both windows, 50,000 requests and 200 MB."""
    profile = current()
    assert profile.base_paths == ("/openai/v1", "/v1")
    assert profile.windows == ("24h", "72h")
    assert (profile.file_lines_max, profile.file_bytes_max) == (50_000, 200_000_000)
    assert profile.extension == "gridline"


def test_the_other_dialect_is_a_file_too() -> None:
    """Gridport has one base path, one window and half the caps."""
    profile = load("gridport")
    assert (profile.base_paths, profile.windows, profile.extension) == (("/v1",), ("24h",), "tf")
    assert (profile.file_lines_max, profile.file_bytes_max) == (10_000, 100_000_000)
    assert profile.file_bytes_max <= limits.FILE_BYTES_MAX


@pytest.mark.parametrize("name", ["nothing", "../settings", ""])
def test_an_unknown_dialect_names_the_known_ones(name: str) -> None:
    """A wrong GRIDLINE_PROFILE stops the process with a sentence that helps."""
    with pytest.raises(SettingInvalid, match="gridline, gridport"):
        load(name)
