"""Platforms that speak another dialect than the default one."""

from dataclasses import replace
from pathlib import Path

import pytest

from gridline.profiles import profile
from gridline.profiles.profile import Profile
from gridline.settings import read_settings

MADE_UP = """
name = "made_up"
base_paths = ["/made/up/v2"]
endpoints = ["/v1/responses"]
windows = ["72h"]
file_bytes_max = 2_000
file_lines_max = 3
storing_fails = "file"
price_percent = 150
listed_batch_prices = false
extension = "acme"
batch_facts = ["hold", "cost"]
batch_constants = {made_by = "Acme"}
retention_by_account = false
request_log_days = 0
"""
"""A dialect that nobody knew when the code was written: its own paths, caps, price and extension."""


def speak(monkeypatch: pytest.MonkeyPatch, name: str) -> Profile:
    """From here on the platform speaks this dialect."""
    chosen = replace(read_settings({}), profile=name)
    monkeypatch.setattr(profile, "settings", lambda: chosen)
    return profile.current()


def speak_made_up(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Profile:
    """From here on it speaks the made-up one, whose file is all that is new."""
    (folder / "made_up.toml").write_text(MADE_UP, encoding="utf-8")
    monkeypatch.setattr(profile, "FOLDER", folder)
    profile.load.cache_clear()
    return speak(monkeypatch, "made_up")
