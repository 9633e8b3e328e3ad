"""The DAG folders, parsed once by a real Airflow."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridline.settings import ROOT, inherited_environment


@pytest.fixture(scope="session")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """What Airflow makes of a folder of DAGs."""
    known: dict[str, dict[str, Any]] = {}

    def parse(folder: str) -> dict[str, Any]:
        if folder not in known:
            home = tmp_path_factory.mktemp("airflow")
            answer = home / "answer.json"
            # Our airflow.cfg, in a home where logs and a database may be written.
            (home / "airflow.cfg").write_text((ROOT / "airflow.cfg").read_text())
            environment = inherited_environment() | {
                "AIRFLOW_HOME": str(home),
                "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
                "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
            }
            script = Path(__file__).with_name("parsed.py")
            subprocess.run(
                [sys.executable, script, ROOT / folder, answer],
                env=environment,
                cwd=ROOT,
                check=True,
                timeout=110,
            )
            known[folder] = json.loads(answer.read_text())
        return known[folder]

    return parse
