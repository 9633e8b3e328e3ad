import json
import logging
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from gridline_airflow import jobs
from gridline_airflow.jobs import JobProcess, forward

from gridline import settings as settings_module
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.settings import ROOT, Settings

ORDER = JobOrder("batches/b/parts/0000/spec.json", "batches/b/parts/0000/attempts/0001-lease_x/")
SOON = 20.0


def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Put a script where the engine environment's Python would be."""
    script = tmp_path / "engine"
    script.write_text(f"#!{sys.executable}\nimport os, signal, sys, time\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(jobs, "settings", lambda: Settings(engine_python=str(script)))


def eventually(what: Path) -> str:
    until = time.monotonic() + SOON
    while time.monotonic() < until:
        if what.exists() and what.read_text():
            return what.read_text()
        time.sleep(0.01)
    pytest.fail(f"{what} was not written")


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def gone(pid: int) -> bool:
    until = time.monotonic() + SOON
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid)


@pytest.mark.parametrize(
    ("ending", "meaning"),
    [
        ("sys.exit(0)", JobExit.DONE),
        ("sys.exit(3)", JobExit.STOPPED),
        ("sys.exit(4)", JobExit.ENGINE_UNHEALTHY),
        ("sys.exit(77)", JobExit.CRASHED),
        ("os.kill(os.getpid(), signal.SIGKILL)", JobExit.CRASHED),
    ],
)
def test_how_a_job_ended_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, meaning: JobExit
) -> None:
    """Exit codes are the contract; an unknown one and a kill are crashes."""
    engine(tmp_path, monkeypatch, ending)
    assert JobProcess(ORDER).follow(logging.getLogger("job")) is meaning


def test_a_job_gets_its_order_and_no_way_into_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order is the only argument after the module; database, Airflow and token secrets stay out of sight."""
    secret = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN GRIDLINE_DATABASE_URL GRIDLINE_AIRFLOW_PASSWORD GRIDLINE_TOKEN_PEPPER"
    secret += " GRIDLINE_OIDC_CLIENT_SECRET"
    for name in (*secret.split(), "GRIDLINE_STATE_DIR"):
        monkeypatch.setenv(name, "/x")
    seen = tmp_path / "seen"
    engine(
        tmp_path,
        monkeypatch,
        f"import json; json.dump([sys.argv[1:], sorted(os.environ), os.getcwd()], open({str(seen)!r}, 'w'))",
    )
    JobProcess(ORDER).follow(logging.getLogger("job"))
    arguments, names, folder = json.loads(seen.read_text())
    assert arguments == ["-m", "gpu_jobs.run", ORDER.to_json()]
    assert not set(secret.split()) & set(names)
    assert "GRIDLINE_STATE_DIR" in names
    assert folder == str(ROOT)


def test_a_jobs_log_lines_are_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """JSON lines keep their level, message and ids; other output is passed on as it is, both streams alike."""
    lines = [json.dumps({"level": "WARNING", "message": "slow", "batch_id": "b1"}), "plain", "[1]"]
    engine(tmp_path, monkeypatch, f"print({chr(10).join(lines)!r}); print('err', file=sys.stderr)")
    with caplog.at_level(logging.DEBUG, "job"):
        JobProcess(ORDER).follow(logging.getLogger("job"))
    told = [(one.levelname, one.getMessage()) for one in caplog.records]
    assert told[:4] == [("WARNING", "slow batch_id=b1"), ("INFO", "plain"), ("INFO", "[1]"), ("INFO", "err")]


def test_a_long_line_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    """One line of a job never fills a task's log."""
    with caplog.at_level(logging.INFO, "job"):
        forward("x" * 10**6, logging.getLogger("job"))
    assert len(caplog.records[0].getMessage()) == jobs.LOG_CHARS_MAX


def test_stopping_lets_the_job_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job gets SIGTERM and its time to close segments."""
    ready, flushed = tmp_path / "ready", tmp_path / "flushed"
    engine(
        tmp_path,
        monkeypatch,
        f"def end(*_):\n    open({str(flushed)!r}, 'w').write('1'); sys.exit(3)\n"
        f"signal.signal(signal.SIGTERM, end)\nopen({str(ready)!r}, 'w').write('1')\ntime.sleep(60)",
    )
    job = JobProcess(ORDER)
    eventually(ready)
    ends: list[JobExit] = []
    following = threading.Thread(target=lambda: ends.append(job.follow(logging.getLogger("job"))))
    following.start()
    job.stop()
    following.join(SOON)
    assert (ends, flushed.exists()) == ([JobExit.STOPPED], True)


def test_what_ignores_the_stop_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its time the whole group is killed, so nothing of the job is left on the machine."""
    monkeypatch.setattr(jobs, "STOP_SECONDS", 0.2)
    pids = tmp_path / "pids"
    engine(
        tmp_path,
        monkeypatch,
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nchild = os.fork()\n"
        f"if child: open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child}}')\ntime.sleep(60)",
    )
    job = JobProcess(ORDER)
    found = [int(one) for one in eventually(pids).split()]
    job.stop()
    assert job.follow(logging.getLogger("job")) is JobExit.CRASHED
    assert all(gone(pid) for pid in found)


def test_a_job_dies_with_its_task(tmp_path: Path) -> None:
    """When the task's process is killed the job gets SIGTERM from the kernel: it flushes and does not run on."""
    script, flushed, pid = tmp_path / "engine", tmp_path / "flushed", tmp_path / "pid"
    script.write_text(
        f"#!{sys.executable}\nimport os, signal, sys, time\n"
        f"def end(*_):\n    open({str(flushed)!r}, 'w').write('1'); sys.exit(3)\n"
        f"signal.signal(signal.SIGTERM, end)\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    )
    script.chmod(0o700)
    body = (
        "import logging\nfrom gridline.lines.orders import JobOrder\nfrom gridline_airflow.jobs import JobProcess\n"
        "JobProcess(JobOrder('s', 'a-l/')).follow(logging.getLogger())"
    )
    task = subprocess.Popen(
        [sys.executable, "-c", body],
        cwd=ROOT,
        env=settings_module.inherited_environment() | {"GRIDLINE_ENGINE_PYTHON": str(script)},
    )
    job = int(eventually(pid))
    task.send_signal(signal.SIGKILL)
    task.wait()
    assert eventually(flushed) == "1"
    assert gone(job)


def test_a_job_that_stands_still_is_ended_once_its_lease_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process hears no signal and no marker; it is killed from here when nobody wants it any more."""
    monkeypatch.setattr(jobs, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(jobs, "STOP_SECONDS", 0.1)
    seen = tmp_path / "seen"
    engine(
        tmp_path, monkeypatch, f"open({str(seen)!r}, 'w').write('up'); os.kill(os.getpid(), signal.SIGSTOP)"
    )
    asked: list[bool] = []

    def wanted() -> bool:
        eventually(seen)
        asked.append(len(asked) < 3)
        return asked[-1]

    assert JobProcess(ORDER).follow(logging.getLogger("job"), wanted=wanted) is JobExit.CRASHED
    assert asked == [True, True, True, False]
