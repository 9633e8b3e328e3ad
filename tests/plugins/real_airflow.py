"""Airflow's real api-server with our plugin, on the tests' PostgreSQL: its setup is ours, nothing else of the stack runs."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from gridline.operate import postgres, secrets
from gridline.operate.stack.airflow_environment import airflow_environment
from gridline.operate.stack.process_control import die_with_parent
from gridline.settings import ROOT, inherited_environment, read_settings

START_SECONDS = 90


@contextmanager
def api_server(server: postgres.Postgres, database: str, folder: Path, port: int) -> Iterator[httpx.Client]:
    """The running server, as a client with its administrator's token."""
    given = {
        "GRIDLINE_STATE_DIR": str(folder),
        "GRIDLINE_DATABASE_URL": server.url(postgres.APP, database),
        "GRIDLINE_AIRFLOW_DATABASE_URL": server.url(postgres.AIRFLOW, "airflow"),
        "GRIDLINE_AIRFLOW_PORT": str(port),
    }
    config = read_settings(given)
    secrets.make(config)
    inherited = {name: value for name, value in inherited_environment().items() if "GRIDLINE" not in name}
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
    environment = inherited | path | given | airflow_environment(config)
    setup = [sys.executable, "-W", "ignore", "-m", "gridline.operate.airflow_setup"]
    subprocess.run(setup, cwd=ROOT, env=environment, check=True, capture_output=True)
    with (folder / "api-server.log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "airflow", "api-server"],
            cwd=ROOT, env=environment, stdout=log, stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509  # it calls one C function
        )  # fmt: skip
    with child, httpx.Client(base_url=config.public_airflow_url, timeout=30) as client:
        try:
            password = config.secret(secrets.AIRFLOW_ADMIN_PASSWORD)
            _sign_in_when_ready(client, child, password, folder / "api-server.log")
            yield client
        finally:
            child.kill()  # it has nothing to lose, and ends slowly when asked


def _sign_in_when_ready(
    client: httpx.Client, child: "subprocess.Popen[bytes]", password: str, log: Path
) -> None:
    until = time.monotonic() + START_SECONDS
    credentials = {"username": secrets.AIRFLOW_ADMIN_USER, "password": password}
    while time.monotonic() < until and child.poll() is None:
        try:
            answer = client.post("/auth/token", json=credentials)
        except httpx.TransportError:
            time.sleep(0.5)
            continue
        client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        return
    pytest.fail(f"Airflow's api-server does not answer:\n{log.read_text()[-5000:]}")


def add_user(admin: httpx.Client, name: str, role: str) -> None:
    """As an administrator does it."""
    user = {
        "username": name, "password": f"password of {name}", "email": f"{name}@example.org",
        "first_name": name, "last_name": "-", "roles": [{"name": role}],
    }  # fmt: skip
    answer = admin.post("/auth/fab/v1/users", json=user)
    assert answer.status_code == 200, answer.text


@contextmanager
def browser(admin: httpx.Client, name: str, *, forges: bool = False) -> Iterator[httpx.Client]:
    """A browser that signed in through Airflow's own page; one that forges has a good CSRF token in all that it sends."""
    with httpx.Client(base_url=admin.base_url, timeout=30) as client:
        token = csrf_token(client.get("/auth/login/").text)
        typed = {"username": name, "password": f"password of {name}", "csrf_token": token}
        answer = client.post("/auth/login/", data=typed)
        assert answer.status_code in (302, 303), answer.text
        if forges:
            client.headers["X-CSRFToken"] = token
        yield client


def csrf_token(html: str) -> str:
    """The token of a page's form."""
    found = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', html)
    assert found is not None, html
    return found[1]
