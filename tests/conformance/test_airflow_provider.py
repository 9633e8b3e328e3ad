"""Airflow's own OpenAI provider, as customers run it in their Airflow: its connection names our address, nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gridline.settings import ROOT, inherited_environment
from tests.conformance.batch_service import Service

PROGRAM = Path(__file__).parent / "clients" / "airflow_operator.py"


@pytest.mark.airflow
def test_airflows_openai_provider_completes_batches(service: Service, tmp_path: Path) -> None:
    """The provider's batch operator waits for one batch in its task and for another in its trigger; both complete."""
    files = [service.file([service.embedding_line(name, name)]) for name in ("waited", "deferred")]
    connection = {"conn_type": "openai", "host": service.base_url, "password": str(service.token)}
    environment = inherited_environment(without=frozenset({"AIRFLOW_CONFIG"})) | {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW_CONN_OPENAI_DEFAULT": json.dumps(connection),
    }
    done = subprocess.run(
        [sys.executable, PROGRAM, *files],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["deferred"]["event"] == "success"
    for batch_id, name in ((told["waited"], "waited"), (told["deferred"]["batch"], "deferred")):
        ended = service.ended(service.batch(batch_id), [service.embedding_line(name, name)])
        assert ended.batch["status"] == "completed"
    assert service.batch(told["deferred"]["batch"])["metadata"] == {"by": "airflow"}
