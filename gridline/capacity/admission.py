"""Admission: given pools, accounts and the queue, who gets a GPU and why the others wait. Pure; reads no database.

The order, best first:

1. A batch without a live lease goes before further partitions of one that has some, so that a large batch grows
   onto idle GPUs and gives way when others wait.
2. Between accounts: the one with the fewest live leases, then the one that was served longest ago.
3. Within an account: 24h before 72h, then batches that never started, then the oldest.

What an operator holds gets nothing. Once the platform's budget of the day is used, nothing starts; what has started
goes on.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gridline.batches.reasons import ReasonCode
from gridline.capacity.pools import EVERY_MODEL
from gridline.limits import WINDOW_SECONDS

WaitCode = Literal[
    ReasonCode.HELD_BY_OPERATOR,
    ReasonCode.ACCOUNT_CAPACITY,
    ReasonCode.PLATFORM_DAILY_LIMIT,
    ReasonCode.GRIDLINE_CAPACITY,
]


@dataclass(frozen=True)
class PoolState:
    """A pool and how many of its GPUs are granted or leased."""

    name: str
    gpus: int
    models: tuple[str, ...]
    datacenter: bool
    live: int


@dataclass(frozen=True)
class AccountState:
    """An account: its limit of leases at once, how many it has, and when it was last served (a lease's fence)."""

    id: str
    leases_max: int
    datacenter_only: bool
    live: int
    last_fence: int = 0


@dataclass(frozen=True)
class Candidate:
    """A batch in the queue: partitions that wait for a lease, and the live leases that it has."""

    batch_id: str
    account_id: str
    model: str
    window: str
    created_at: datetime
    sequence: int
    started: bool
    live: int
    partitions: tuple[int, ...]
    held: bool = False
    """An operator holds it."""
    hold_nanos: int = 0
    """The most it can cost: what its start takes of the platform's budget of the day."""


@dataclass(frozen=True)
class Grant:
    """Admit: this partition may take one GPU of this pool."""

    batch_id: str
    partition: int
    pool: str


@dataclass(frozen=True)
class Wait:
    """Wait because: a batch that has no lease and gets none now."""

    batch_id: str
    code: WaitCode


@dataclass(frozen=True)
class Decision:
    """Every grant, in the order of the queue, and every batch that waits."""

    grants: tuple[Grant, ...]
    waits: tuple[Wait, ...]


def decide(
    pools: Sequence[PoolState],
    accounts: Sequence[AccountState],
    queue: Sequence[Candidate],
    *,
    budget_nanos: int | None = None,
) -> Decision:
    """Grant free GPUs in the queue's order until none fits, then say why the rest wait.

    ``budget_nanos`` is what the platform may still start today: at 0 or below nothing starts; None is no limit.
    """
    round_ = _Round(pools, accounts, queue, budget_nanos)
    grants = []
    while (grant := round_.next_grant()) is not None:
        grants.append(grant)
    waits = [Wait(one.batch_id, round_.code(one)) for one in queue if round_.batch_live[one.batch_id] == 0]
    return Decision(tuple(grants), tuple(waits))


_Head = tuple[Candidate, str]
"""A candidate and the pool that it fits in."""


class _Round:
    """One decision in the making: what is taken so far."""

    def __init__(
        self,
        pools: Sequence[PoolState],
        accounts: Sequence[AccountState],
        queue: Sequence[Candidate],
        budget_nanos: int | None,
    ) -> None:
        # Pools that serve few models first: the others stay free for whoever fits nowhere else.
        self.pools = sorted(pools, key=lambda pool: (EVERY_MODEL in pool.models, len(pool.models), pool.name))
        self.free = {pool.name: pool.gpus - pool.live for pool in pools}
        self.accounts = {account.id: account for account in accounts}
        self.account_live = Counter({account.id: account.live for account in accounts})
        self.served = {account.id: (0, account.last_fence) for account in accounts}
        self.batch_live = Counter({one.batch_id: one.live for one in queue})
        self.left = {one.batch_id: list(one.partitions) for one in queue}
        self.queues: dict[str, list[Candidate]] = {}
        for one in sorted(queue, key=_age):
            self.queues.setdefault(one.account_id, []).append(one)
        self.heads: dict[str, _Head | None] = {}
        self.budget_nanos = budget_nanos
        self.granted = 0

    def next_grant(self) -> Grant | None:
        """Take the best place that is left; None when nobody fits."""
        heads = self._heads()
        if not heads:
            return None
        best, pool = min(heads, key=lambda head: self._between_accounts(head[0]))
        self._take(best, pool)
        return Grant(best.batch_id, self.left[best.batch_id].pop(0), pool)

    def _take(self, best: Candidate, pool: str) -> None:
        self.granted += 1
        self.free[pool] -= 1
        used_up = self.free[pool] == 0
        if self.budget_nanos is not None and self._is_start(best):
            self.budget_nanos -= best.hold_nanos
            used_up = used_up or self.budget_nanos <= 0
        self.account_live[best.account_id] += 1
        self.served[best.account_id] = (1, self.granted)
        self.batch_live[best.batch_id] += 1
        # What the others' best is changes only with a pool that is full or a budget that is used.
        if used_up:
            self.heads.clear()
        self.heads.pop(best.account_id, None)

    def code(self, one: Candidate) -> WaitCode:
        """Why this batch waits, once everything is given."""
        if one.held:
            return ReasonCode.HELD_BY_OPERATOR
        if self._account_full(one):
            return ReasonCode.ACCOUNT_CAPACITY
        return ReasonCode.GRIDLINE_CAPACITY if self._may_go_on(one) else ReasonCode.PLATFORM_DAILY_LIMIT

    def _heads(self) -> list[_Head]:
        """Each account's best candidate that fits somewhere, with the pool."""
        if not any(free > 0 for free in self.free.values()):
            return []
        for account_id, queue in self.queues.items():
            if account_id not in self.heads:
                self.heads[account_id] = self._head(queue)
        return [head for head in self.heads.values() if head is not None]

    def _head(self, queue: list[Candidate]) -> _Head | None:
        found: _Head | None = None
        for one in queue:
            if not self._may_get_more(one):
                continue
            if found is not None and self._within_account(found[0]) <= self._within_account(one):
                continue
            pool = self._pool_for(one)
            if pool is not None:
                found = (one, pool)
        return found

    def _may_get_more(self, one: Candidate) -> bool:
        return bool(self.left[one.batch_id]) and not (
            one.held or self._account_full(one) or not self._may_go_on(one)
        )

    def _is_start(self, one: Candidate) -> bool:
        """Whether its next grant would start it; a grant that waits to be claimed counts as a start already."""
        return not one.started and self.batch_live[one.batch_id] == 0

    def _may_go_on(self, one: Candidate) -> bool:
        return self.budget_nanos is None or self.budget_nanos > 0 or not self._is_start(one)

    def _account_full(self, one: Candidate) -> bool:
        return self.account_live[one.account_id] >= self.accounts[one.account_id].leases_max

    def _pool_for(self, one: Candidate) -> str | None:
        bound = self.accounts[one.account_id].datacenter_only
        for pool in self.pools:
            serves = one.model in pool.models or EVERY_MODEL in pool.models
            if serves and self.free[pool.name] > 0 and (pool.datacenter or not bound):
                return pool.name
        return None

    def _within_account(self, one: Candidate) -> tuple[object, ...]:
        live = self.batch_live[one.batch_id]
        return (WINDOW_SECONDS[one.window], one.started or live > 0, live > 0, _age(one))

    def _between_accounts(self, one: Candidate) -> tuple[object, ...]:
        account = one.account_id
        return (
            self.batch_live[one.batch_id] > 0,
            self.account_live[account],
            self.served[account],
            _age(one),
        )


def _age(one: Candidate) -> tuple[datetime, int]:
    return (one.created_at, one.sequence)
