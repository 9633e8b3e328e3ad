"""How fast the books are beside the database's own benchmark: `make bench-ledger`.

Each client places and settles holds of its own account, two transactions a pair, through the code that batches use, on an
embedded PostgreSQL that keeps every promise of durability. pgbench's built-in script (one account, one teller and one
branch a transaction, and a line of history) runs on the same server with as many clients, in turn. Only the ratio means
something on a shared machine.
"""

import multiprocessing
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from typing import Any

from sqlalchemy import create_engine

from bench import servers
from gridline import ids
from gridline.batches.tables import Batch
from gridline.clock import Clock, SystemClock
from gridline.customers import accounts
from gridline.db.migrate import migrate
from gridline.db.work import Work, make_engine, unit_of_work
from gridline.errors import GridlineError, Unavailable
from gridline.files.tables import File
from gridline.ledger import holding, posting, proving, settling
from gridline.operate import postgres, provisioning

CLIENTS = 8
PAIRS_A_ROUND = 60
ROUNDS = 7
PGBENCH_SECONDS = 3
PGBENCH_SCALE = 10
AMOUNT_NANOS = 1_000
RATIO_AIM = 0.5
CARD: dict[str, Any] = {
    "id": "bench",
    "commit": "0" * 40,
    "kind": "chat",
    "input_price_nanos": 1,
    "output_price_nanos": 1,
}


def prepare(url: str, client: int) -> list[tuple[str, str]]:
    """A client's account with credit, and as many batches as it will settle: (account id, batch id)."""
    engine, pairs = make_engine(url), (ROUNDS + 1) * PAIRS_A_ROUND
    with unit_of_work(engine=engine) as work:
        account = accounts.open_account(work, f"bench-{client}")
        posting.grant(work, account.id, 10**12, actor="operator", why="bench", key="bench")
        made = [(account.id, _batch(work, account.id)) for _ in range(pairs)]
    engine.dispose()
    return made


def _batch(work: Work, account_id: str) -> str:
    file_id, batch_id = ids.new("file"), ids.new("batch")
    work.session.add(
        File(
            id=file_id, account_id=account_id, purpose="batch", filename="b.jsonl", bytes=1, sha256="0", object_key=file_id,
            created_at=work.now,
        )
    )  # fmt: skip
    work.session.flush()
    work.session.add(
        Batch(
            id=batch_id, account_id=account_id, created_by="bench", endpoint="/v1/chat/completions", input_file_id=file_id,
            completion_window="24h", status="validating", created_at=work.now, start_by=work.now + timedelta(hours=12),
            expires_at=work.now + timedelta(hours=24),
        )
    )  # fmt: skip
    work.session.flush()
    return batch_id


def client(url: str, work_: list[tuple[str, str]], begin: Barrier, end: Barrier) -> None:
    """One client's process: its pairs of each round, between the two barriers."""
    engine = make_engine(url)
    for first in range(0, len(work_), PAIRS_A_ROUND):
        begin.wait()
        for account_id, batch_id in work_[first : first + PAIRS_A_ROUND]:
            with unit_of_work(engine=engine) as work:
                holding.place(
                    work, batch_id=batch_id, account_id=account_id, amount_nanos=AMOUNT_NANOS, card=CARD
                )
            with unit_of_work(engine=engine) as work:
                settling.settle(
                    work, batch_id=batch_id, charge_nanos=500, lines=1, input_tokens=250, output_tokens=250
                )
        end.wait()


def pgbench(cluster: postgres.Postgres) -> float:
    """Transactions per second of pgbench's own script, on a database of its own on the same server.

    Raises:
        Unavailable: pgbench failed.
    """
    clients = ("-c", str(CLIENTS), "-j", "2", "-T", str(PGBENCH_SECONDS))
    done = _pgbench(cluster, *clients)
    found = re.search(r"tps = ([0-9.]+)", done)
    if found is None:
        raise Unavailable(f"pgbench said no figure: {done[-500:]}")
    return float(found[1])


def _pgbench(cluster: postgres.Postgres, *arguments: str) -> str:
    address = cluster.url(postgres.OWNER, "pgbench").replace("postgresql+psycopg", "postgresql")
    done = subprocess.run(
        [cluster.binaries / "pgbench", *arguments, address], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"pgbench failed: {done.stderr[-500:]}")
    return done.stdout


def measure(cluster: postgres.Postgres) -> list[tuple[float, float]]:
    """Transactions per second of ours and of pgbench, round by round; the first round does not count."""
    url = cluster.url(postgres.APP, "gridline")
    context = multiprocessing.get_context("fork")
    work_ = [prepare(url, number) for number in range(CLIENTS)]
    begin, end = context.Barrier(CLIENTS + 1), context.Barrier(CLIENTS + 1)
    children = [context.Process(target=client, args=(url, one, begin, end), daemon=True) for one in work_]
    for child in children:
        child.start()

    def ours() -> float:
        begin.wait(60)
        started = time.monotonic()
        end.wait(300)
        return 2 * CLIENTS * PAIRS_A_ROUND / (time.monotonic() - started)

    sides: tuple[Callable[[], float], ...] = (ours, lambda: pgbench(cluster))
    found = [tuple(side() for side in sides) for _ in range(ROUNDS + 1)]
    for child in children:
        child.join(30)
    return [(one, other) for one, other in found[1:]]


def prove(url: str, clock: Clock | None = None) -> list[str]:
    """What does not hold of the books afterwards."""
    engine = make_engine(url)
    with unit_of_work(engine=engine, clock=clock or SystemClock()) as work:
        broken = proving.prove(work)
    engine.dispose()
    return broken


def main() -> int:
    """Start a database, measure, prove the books, print."""
    try:
        with servers.new_folder() as folder:
            cluster = postgres.Postgres(folder / "postgres", servers.free_port(), folder / "secrets")
            child = cluster.start()
            try:
                provisioning.provision_embedded(cluster)
                with cluster.connect("postgres") as connection:
                    provisioning.create_database(connection, "pgbench", postgres.OWNER)
                owner = create_engine(cluster.url(postgres.OWNER, "gridline"))
                with owner.begin() as migrating:
                    migrate(migrating)
                owner.dispose()
                _pgbench(cluster, "-i", "-q", "-s", str(PGBENCH_SCALE))
                rounds = measure(cluster)
                broken = prove(cluster.url(postgres.APP, "gridline"))
            finally:
                postgres.stop(child)
    except GridlineError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    for name, place in (("hold and settle", 0), ("pgbench's script", 1)):
        middle = statistics.median(one[place] for one in rounds)
        print(f"{name:<20}{middle:>8.0f} transactions/s, {CLIENTS} clients")
    ratios = sorted(ours / theirs for ours, theirs in rounds)
    print(
        f"ours beside pgbench: {statistics.median(ratios):.2f} (rounds {ratios[0]:.2f} to {ratios[-1]:.2f}; "
        f"aim: at least {RATIO_AIM})"
    )
    print("\n".join(broken) or "the books hold")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
