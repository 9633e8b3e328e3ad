"""What the machine does to us: a database that is restarted or stands still, a disk that is full."""

import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import psutil
import pytest
from sqlalchemy import Engine, create_engine

from gridline.customers import accounts, tokens
from gridline.db.migrate import migrate
from gridline.db.work import make_engine, unit_of_work
from gridline.operate import postgres, provisioning
from gridline.settings import read_settings
from tests.conftest import free_port, server_folder
from tests.serving import PEPPER, serving, until

pytestmark = [pytest.mark.deep, pytest.mark.timeout(180)]

LINE = b'{"custom_id":"a"}\n'
DISK_BYTES = 4 << 20


@dataclass
class Database:
    """A server of the test's own, durable as in production, which the test may end and start."""

    cluster: postgres.Postgres
    child: "subprocess.Popen[bytes]"

    def engine(self) -> Engine:
        """The domain database as the app role."""
        return make_engine(self.cluster.url(postgres.APP, "gridline"))

    def restart(self) -> None:
        """End it as a crash does, and start it again: what was committed has to be there."""
        self.child.send_signal(signal.SIGQUIT)
        self.child.wait(30)
        time.sleep(1)  # long enough that requests meet its absence
        self.child = self.cluster.start()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """None of its processes does anything inside the block."""
        server = psutil.Process(self.child.pid)
        family = [server, *server.children(recursive=True)]
        for one in family:
            one.suspend()
        try:
            yield
        finally:
            for one in family:
                one.resume()


@pytest.fixture
def database_server() -> Iterator[Database]:
    """A migrated database on a server of its own."""
    folder = server_folder()
    cluster = postgres.Postgres(folder / "postgres", free_port(), folder / "secrets")
    one = Database(cluster, cluster.start())
    try:
        provisioning.provision_embedded(cluster)
        owner = create_engine(cluster.url(postgres.OWNER, "gridline"))
        with owner.begin() as connection:
            migrate(connection)
        owner.dispose()
        yield one
    finally:
        postgres.stop(one.child)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Uploader:
    """Uploads small files one after the other, and keeps every answer."""

    client: httpx.Client
    pid: int
    """The API's process."""
    kept: list[str] = field(default_factory=list)
    answers: list[httpx.Response] = field(default_factory=list)

    def upload(self, data: bytes = LINE) -> httpx.Response:
        """One upload."""
        answer = self.client.post("/v1/files", data={"purpose": "batch"}, files={"file": ("r.jsonl", data)})
        self.answers.append(answer)
        if answer.status_code == 200:
            self.kept.append(answer.json()["id"])
        return answer

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Upload on and on in a thread while the block runs."""
        over = threading.Event()

        def work() -> None:
            while not over.is_set():
                self.upload()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(60)

    def lost(self) -> list[str]:
        """Files whose upload was answered 200 and that are not there."""
        return [one for one in self.kept if self.client.get(f"/v1/files/{one}/content").content != LINE]


def check_refusals(answers: list[httpx.Response], statuses: set[int]) -> None:
    """No other statuses, and each refusal is JSON that says when to come again."""
    assert {one.status_code for one in answers} <= statuses, {one.status_code for one in answers}
    for one in answers:
        if one.status_code == 503:
            assert one.json()["error"]["code"] == "service_unavailable"
            assert 0 < int(one.headers["retry-after"]) <= 60


@contextmanager
def uploader(engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Uploader]:
    """A customer of an API process on this database, with its store in the folder."""
    chosen = replace(read_settings({}), token_pepper=PEPPER)
    monkeypatch.setattr(tokens, "settings", lambda: chosen)
    with serving(engine, folder) as served:
        with unit_of_work(engine=engine) as work:
            account = accounts.open_account(work, "uploader")
            account.requests_per_minute_max = 10**6
            _, token = tokens.issue(work, account.id, "uploader")
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=served.url, headers=headers, timeout=60, verify=False) as client:
            yield Uploader(client, served.process.pid)


def test_a_restarted_database_costs_503s_and_loses_nothing(
    database_server: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash of the database: only 200 and 503 with Retry-After are answered, and every file answered 200 is there after."""
    engine = database_server.engine()
    with uploader(engine, tmp_path, monkeypatch) as one:
        with one.at_work():
            until(lambda: len(one.kept) > 5)
            database_server.restart()
            before = len(one.kept)
            until(lambda: len(one.kept) > before + 5)
        check_refusals(one.answers, {200, 503})
        assert 503 in {answer.status_code for answer in one.answers}
        assert one.lost() == []
    engine.dispose()


def test_a_database_that_stands_still_is_waited_for(
    database_server: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight seconds without an answer from the database: requests wait or are told to come again, and nothing is lost."""
    engine = database_server.engine()
    with uploader(engine, tmp_path, monkeypatch) as one:
        with one.at_work():
            until(lambda: len(one.kept) > 5)
            with database_server.standing_still():
                time.sleep(8)  # the fault itself
            before = len(one.kept)
            until(lambda: len(one.kept) > before + 5)
        check_refusals(one.answers, {200, 503})
        assert one.lost() == []
    engine.dispose()


@dataclass
class SmallDisk:
    """A folder with room for 4 MiB; where no disk may be mounted, a process that may write no larger file."""

    folder: Path
    mounted: bool

    def bound(self, pid: int) -> None:
        """Let it hold for this process."""
        if not self.mounted:
            psutil.Process(pid).rlimit(psutil.RLIMIT_FSIZE, (DISK_BYTES, psutil.RLIM_INFINITY))

    def give_room(self, pid: int) -> None:
        """Room for more than the test writes."""
        if self.mounted:
            _mount("-o", f"remount,size={16 * DISK_BYTES}", self.folder).check_returncode()
        else:
            psutil.Process(pid).rlimit(psutil.RLIMIT_FSIZE, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))


def _mount(*arguments: str | Path) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["mount", *arguments], capture_output=True, check=False)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """The folder of an API's objects, on a disk that is soon full."""
    folder = tmp_path / "state"
    folder.mkdir()
    done = _mount("-t", "tmpfs", "-o", f"size={DISK_BYTES}", "gridline-test", folder)
    one = SmallDisk(folder, mounted=done.returncode == 0)
    try:
        yield one
    finally:
        if one.mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_refuses_uploads_and_heals(
    database: Engine, small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No room for a file: a 503 in JSON, no file and no leftover that counts; with room again the next upload passes."""
    large = b'{"custom_id":"a","text":"' + b"x" * (2 * DISK_BYTES - 100) + b'"}\n'
    with uploader(database, small_disk.folder, monkeypatch) as one:
        small_disk.bound(one.pid)
        assert one.upload().status_code == 200
        answer = one.upload(large)
        assert answer.status_code == 503, answer.text
        check_refusals(one.answers, {200, 503})
        assert [file["id"] for file in one.client.get("/v1/files").json()["data"]] == one.kept
        assert one.upload().status_code == 200, "what was not stored takes no room"
        small_disk.give_room(one.pid)
        assert one.upload(large).status_code == 200
        assert one.client.get("/v1/files").json()["data"][0]["bytes"] == len(large)
