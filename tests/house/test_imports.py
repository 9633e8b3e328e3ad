"""The arrows of ARCHITECTURE.md: import-linter's contracts hold, and each of them sees what it forbids."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

PACKAGES = {
    "gridline": "gridline",
    "api": "api",
    "dashboard": "dashboard",
    "gpu_jobs": "gpu_jobs",
    "plugins/gridline_airflow": "gridline_airflow",
}
OURS = {"gridline", "api", "gpu_jobs", "gridline_airflow", "dashboard"}

BREAKS = {
    "Rooms import downward only": ("gridline/ledger/broken.py", "import gridline.batches"),
    "Nothing below imports what serves": ("gridline/keeper/broken.py", "import api"),
    "do not know each other": ("api/broken.py", "import gridline_airflow"),
    "GPU jobs see": ("gpu_jobs/broken.py", "import gridline.ledger"),
    "What GPU jobs use knows no database": ("gridline/storage/broken.py", "import sqlalchemy"),
    "Only the plugin imports Airflow": ("gridline/capacity/broken.py", "import airflow"),
    "Only the API imports a web server": ("gridline/customers/broken.py", "import flask"),
    "Customers' programs": ("dashboard/broken.py", "import gridline.batches.reading"),
}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts of the pyproject.toml in this folder on the packages beside it."""
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [str(program), "--no-cache"],
        cwd=folder,
        env={"PATH": os.defpath, "PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages and their contracts, to break."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copy(root / "pyproject.toml", folder)
    for source, name in PACKAGES.items():
        shutil.copytree(root / source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_every_contract_holds(copy: Path) -> None:
    """The code as it stands keeps every import contract."""
    run = lint_imports(copy)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("contract", BREAKS)
def test_a_contract_sees_what_it_forbids(contract: str, copy: Path) -> None:
    """One planted import breaks the contract that forbids it."""
    path, line = BREAKS[contract]
    (copy / path).write_text(f"{line}\n")
    try:
        run = lint_imports(copy)
    finally:
        (copy / path).unlink()
    assert run.returncode == 1
    assert [one for one in run.stdout.splitlines() if contract in one and "BROKEN" in one]


def our_imports(tree: ast.Module) -> set[str]:
    """Which modules of ours a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{one.name}" for one in node.names}
    return {name for name in found if name.split(".")[0] in OURS}


DAG_MAY = (
    "gridline_airflow",
    "gridline.batches",
    "gridline.capacity",
    "gridline.keeper",
    "gridline.limits",
    "gridline.proof",
)


@pytest.mark.parametrize(
    ("folder", "allowed"), [("dags/", DAG_MAY), ("plugins/gridline_plugin.py", ("gridline_airflow",))]
)
def test_files_outside_packages_keep_to_their_arrows(
    folder: str, allowed: tuple[str, ...], product: dict[str, ast.Module]
) -> None:
    """DAG files know the domain's task bodies, the plugin's door its package."""
    found = {
        path: strange
        for path, tree in product.items()
        if path.startswith(folder)
        and (strange := [name for name in sorted(our_imports(tree)) if not name.startswith(allowed)])
    }
    assert found == {}


def test_an_import_of_ours_is_seen_wherever_it_stands() -> None:
    """An import inside a function counts too."""
    tree = ast.parse("def f():\n    from gridline.db import work\nimport json, gridline.ledger")
    assert our_imports(tree) == {"gridline.db.work", "gridline.ledger"}
