import json
from pathlib import Path

import pytest

from gpu_jobs import prepare
from gridline.errors import SettingInvalid


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A packaged model of one file; the list of the folders it was made into."""
    calls: list[Path] = []

    def make(package: Path, folder: Path) -> None:
        calls.append(folder)
        (folder / "config.json").write_text(package.name)

    monkeypatch.setitem(prepare.RECIPES, "tiny", prepare.Recipe("pytest", make))
    return calls


def test_made_once(made: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model is made once, whole, with its origin, and says so; a second call does nothing."""
    folder = prepare.prepare("tiny", tmp_path / "models")
    assert (folder / "config.json").read_text() == "pytest"
    assert json.loads((folder / "prepared.json").read_text())["package"] == "pytest"
    assert "tiny: ready after" in capsys.readouterr().out
    assert prepare.prepare("tiny", tmp_path / "models") == folder
    assert len(made) == 1
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny"]


def test_broken_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A preparation that breaks off leaves no folder that looks like a model."""

    def fail(_: Path, folder: Path) -> None:
        (folder / "config.json").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(prepare.RECIPES, "tiny", prepare.Recipe("pytest", fail))
    with pytest.raises(OSError, match="No space"):
        prepare.prepare("tiny", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model_id", ["unknown", "absent"])
def test_no_package(model_id: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A model that no package carries, or whose package is not installed, is refused with the next step."""
    monkeypatch.setitem(prepare.RECIPES, "absent", prepare.Recipe("no-such-package", lambda *_: None))
    with pytest.raises(SettingInvalid, match=r"No package carries|not installed"):
        prepare.prepare(model_id, tmp_path)
