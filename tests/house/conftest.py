"""What the house rules read: the tracked files' text, and the syntax trees of the product and of the tests."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("gridline/", "api/", "gpu_jobs/", "plugins/", "dags/", "dashboard/")
BINARY = {".png", ".gif", ".jpg", ".ico", ".parquet", ".gguf"}


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def texts() -> dict[str, str]:
    """Every text file that is tracked, or would be: path in the repository to its text."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    paths = [path for path in sorted(set(listed)) if path and (ROOT / path).is_file()]
    return {path: (ROOT / path).read_text() for path in paths if Path(path).suffix not in BINARY}


@pytest.fixture(scope="session")
def product(texts: dict[str, str]) -> dict[str, ast.Module]:
    """The product's Python files, migrations left out: path to syntax tree."""
    return {
        path: ast.parse(text, path)
        for path, text in texts.items()
        if path.endswith(".py") and path.startswith(PRODUCT) and "/migrations/" not in path
    }


@pytest.fixture(scope="session")
def tests(texts: dict[str, str]) -> dict[str, ast.Module]:
    """The tests' Python files: path to syntax tree."""
    return {
        path: ast.parse(text, path)
        for path, text in texts.items()
        if path.endswith(".py") and path.startswith("tests/")
    }
