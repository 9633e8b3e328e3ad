"""The servers that benches measure beside each other, each an own process: ours, nginx, a hello-world Flask app.

`python -m bench.servers PORT` is the last of them.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from flask import Flask

from api.serve import make_server
from gridline.errors import Unavailable
from gridline.operate import postgres, provisioning
from gridline.operate.stack.process_control import die_with_parent
from gridline.settings import ROOT, inherited_environment

START_SECONDS_MAX = 60
HOST = "127.0.0.1"
# One worker, as our server is one process. It stores the body as a file, which it never syncs to the disk.
NGINX = """
daemon off; master_process off; worker_processes 1; error_log {folder}/error.log; pid {folder}/nginx.pid;
events {{ worker_connections 256; }}
http {{
  access_log off; client_max_body_size 0; {more}
  client_body_temp_path {folder}/temp;
  proxy_temp_path {folder}/unused1; fastcgi_temp_path {folder}/unused2;
  uwsgi_temp_path {folder}/unused3; scgi_temp_path {folder}/unused4;
  server {{ listen {host}:{port}; root {folder}/stored; location / {{ dav_methods PUT DELETE; }} }}
}}
"""


@dataclass(frozen=True)
class Ours:
    """Our server with a database and a store of its own, and a customer's token."""

    url: str
    token: str
    process: "subprocess.Popen[bytes]"


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def new_folder() -> Iterator[Path]:
    """A folder on a real disk that the database's system user may enter, gone afterwards."""
    parent = "/var/lib" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="gridline-bench-", dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def ours(folder: Path) -> Iterator[Ours]:
    """`python -m api.serve` on its own embedded PostgreSQL, with an account that no rate limit stops."""
    cluster = postgres.Postgres(folder / "postgres", free_port(), folder / "secrets")
    child = cluster.start()
    try:
        provisioning.provision_embedded(cluster)
        port = free_port()
        environment = _clean_environment() | {
            "GRIDLINE_DATABASE_URL": cluster.url(postgres.APP, "gridline"),
            "GRIDLINE_DATABASE_OWNER_URL": cluster.url(postgres.OWNER, "gridline"),
            "GRIDLINE_STORE_URL": (folder / "objects").as_uri(),
            "GRIDLINE_STATE_DIR": str(folder),
            "GRIDLINE_TOKEN_PEPPER": "bench",
            "GRIDLINE_API_PORT": str(port),
        }
        _gridline(environment, "migrate")
        _gridline(environment, "ops", "account", "bench")
        with cluster.connect("gridline") as connection:
            connection.execute("UPDATE accounts SET requests_per_minute_max = 2000000000")
        token = _gridline(environment, "ops", "token", "bench").strip()
        command = [sys.executable, "-m", "api.serve"]
        with (
            (folder / "api.log").open("wb") as log,
            _running(command, environment, f"http://{HOST}:{port}/readyz", log=log.fileno()) as process,
        ):
            yield Ours(f"http://{HOST}:{port}", token, process)
    finally:
        postgres.stop(child)


@contextmanager
def hello() -> Iterator[str]:
    """Flask's hello world behind the same server code; its URL."""
    port = free_port()
    command = [sys.executable, "-m", "bench.servers", str(port)]
    url = f"http://{HOST}:{port}/"
    with _running(command, _clean_environment(), url):
        yield url


@contextmanager
def nginx(folder: Path, program: str, *, more: str = "") -> Iterator[str]:
    """An nginx that stores what is PUT, as it comes or with more configuration; its URL."""
    port = free_port()
    (folder / "stored").mkdir(parents=True)
    config = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    config.write_text(user + NGINX.format(folder=folder, host=HOST, port=port, more=more))
    url = f"http://{HOST}:{port}/"
    command = [program, "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log")]
    with _running(command, _clean_environment(), url):
        yield url


def nginx_program() -> str | None:
    """The nginx of this machine; as root on Debian it is installed when it is missing. None: there is none."""
    places = f"{os.defpath}:/usr/sbin:/usr/local/sbin"
    found = shutil.which("nginx") or shutil.which("nginx", path=places)
    installer = shutil.which("apt-get")
    if found is None and os.geteuid() == 0 and installer:
        print("Installing nginx-light, to compare uploads with")
        quiet = inherited_environment() | {"DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (
            ["update", "-qq"],
            ["install", "-y", "-qq", "--no-install-recommends", "nginx-light"],
        ):
            subprocess.run([installer, *arguments], env=quiet, check=False, stdout=subprocess.DEVNULL)
        found = shutil.which("nginx", path=places)
    return found


def _clean_environment() -> dict[str, str]:
    return {
        name: value for name, value in inherited_environment().items() if not name.startswith("GRIDLINE_")
    }


def _gridline(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "gridline.cli.main", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


@contextmanager
def _running(
    command: list[str], environment: dict[str, str], url: str, *, log: int | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A child that answers at this address, stopped afterwards and never left behind."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=log, stderr=log,
        preexec_fn=die_with_parent,  # noqa: PLW1509  # it calls one C function
    )  # fmt: skip
    try:
        _wait(process, url)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: "subprocess.Popen[bytes]", url: str) -> None:
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(url, timeout=5).status_code < 500:  # noqa: PLR2004 - HTTP's own border
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise Unavailable(f"{process.args!r} did not answer at {url}.")


def main() -> int:
    """Serve hello world on the given port."""
    app = Flask("hello")

    @app.get("/")
    def say() -> str:
        return "Hello, World!"

    make_server(app, HOST, int(sys.argv[1])).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
