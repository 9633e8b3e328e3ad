"""Admission's order and its reasons, on values alone."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridline.capacity.admission import AccountState, Candidate, Decision, PoolState, decide

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def pool(gpus: int = 1, *, name: str = "local", models: tuple[str, ...] = ("*",), live: int = 0) -> PoolState:
    """A pool that stands in a datacenter when its name says so."""
    return PoolState(name=name, gpus=gpus, models=models, datacenter=name.startswith("dc"), live=live)


def account(name: str, *, leases_max: int = 4, live: int = 0, last_fence: int = 0) -> AccountState:
    """An account that may run anywhere."""
    return AccountState(name, leases_max, datacenter_only=False, live=live, last_fence=last_fence)


def waiting(name: str, *, age: int = 0, window: str = "24h", partitions: int = 1, live: int = 0) -> Candidate:
    """A batch of the account that its name begins with; older by ``age`` minutes, then by name."""
    return Candidate(
        batch_id=name,
        account_id=name[0],
        model="m",
        window=window,
        created_at=NOON - timedelta(minutes=age),
        sequence=int.from_bytes(name.encode()),
        started=live > 0,
        live=live,
        partitions=tuple(range(live, live + partitions)),
    )


def order(decision: Decision) -> list[str]:
    """Batch ids in the order of their grants."""
    return [one.batch_id for one in decision.grants]


def reasons(decision: Decision) -> dict[str, str]:
    """Why each batch waits."""
    return {one.batch_id: str(one.code) for one in decision.waits}


def test_a_free_gpu_goes_to_whoever_waits() -> None:
    """One batch, one GPU: granted, and nobody waits."""
    decision = decide([pool()], [account("a")], [waiting("a1")])
    assert [(one.batch_id, one.partition, one.pool) for one in decision.grants] == [("a1", 0, "local")]
    assert decision.waits == ()


def test_within_an_account_the_day_window_then_the_oldest_goes_first() -> None:
    """24h before 72h however old the 72h one is, then by age."""
    queue = [waiting("a1", age=99, window="72h"), waiting("a2", age=1), waiting("a3", age=2)]
    decision = decide([pool(3)], [account("a")], queue)
    assert order(decision) == ["a3", "a2", "a1"]


def test_a_72h_batch_does_not_go_before_a_24h_batchs_further_partitions() -> None:
    """Free capacity goes to the account's 24h batches first, also to one that runs already."""
    queue = [waiting("a1", live=1, partitions=2), waiting("a2", window="72h")]
    decision = decide([pool(2, live=1)], [account("a", live=1)], queue)
    assert order(decision) == ["a1"]
    assert reasons(decision) == {"a2": "gridline_capacity"}


def test_the_account_with_least_running_goes_first() -> None:
    """An old batch of an account with three leases waits behind a new one of an account with none."""
    accounts = [account("a", live=3), account("b", live=1), account("c")]
    decision = decide([pool(6, live=4)], accounts, [waiting("a1", age=9), waiting("b1"), waiting("c1")])
    assert order(decision) == ["c1", "b1"]
    assert reasons(decision) == {"a1": "gridline_capacity"}


def test_between_equals_the_account_served_longest_ago_goes_first() -> None:
    """With one GPU, accounts take turns instead of the oldest queue draining first."""
    accounts = [account("a", last_fence=7), account("b", last_fence=3)]
    decision = decide([pool()], accounts, [waiting("a1", age=9), waiting("b1")])
    assert order(decision) == ["b1"]


def test_first_leases_go_before_further_partitions() -> None:
    """A running batch grows only onto GPUs that nobody without a lease can use."""
    queue = [waiting("a1", age=9, live=1, partitions=9), waiting("b1", partitions=9), waiting("c1")]
    decision = decide([pool(4, live=1)], [account("a", live=1), account("b"), account("c")], queue)
    assert order(decision)[:2] == ["b1", "c1"]
    assert len(decision.grants) == 3
    assert decision.waits == ()


def test_growth_gives_way_also_to_accounts_that_run_more() -> None:
    """A batch without a lease goes before another's growth, even where its account has more leases."""
    queue = [waiting("a1", age=9, live=1, partitions=9), waiting("b1")]
    decision = decide([pool(4, live=3)], [account("a", live=1), account("b", live=2)], queue)
    assert order(decision) == ["b1"]


def test_a_batch_grows_onto_idle_gpus_in_partition_order() -> None:
    """Alone in the queue, a batch takes every GPU that its account may use."""
    decision = decide([pool(9)], [account("a", leases_max=3)], [waiting("a1", partitions=5)])
    assert [one.partition for one in decision.grants] == [0, 1, 2]


def test_an_account_at_its_limit_waits_for_itself() -> None:
    """The account's own limit is named first; others hear that the platform is full."""
    accounts = [account("a", leases_max=1), account("b")]
    queue = [waiting("a1", age=9), waiting("a2"), waiting("b1"), waiting("b2")]
    assert reasons(decide([pool(2)], accounts, queue)) == {
        "a2": "account_capacity",
        "b2": "gridline_capacity",
    }
    # Also where GPUs are free: more of them would not help this account.
    assert reasons(decide([pool(9)], accounts, queue)) == {"a2": "account_capacity"}


def test_only_pools_that_serve_the_model_count() -> None:
    """A free GPU that serves other models is none; a pool that serves few is taken before one that serves all."""
    other = pool(5, name="other", models=("n",))
    assert reasons(decide([other], [account("a")], [waiting("a1")])) == {"a1": "gridline_capacity"}
    decision = decide(
        [pool(name="any"), pool(name="own", models=("m",))], [account("a")], [waiting("a1", partitions=2)]
    )
    assert [one.pool for one in decision.grants] == ["own", "any"]


def test_some_accounts_run_only_in_datacenters() -> None:
    """An account bound to datacenters waits while only other pools are free; the rest may use every pool."""
    bound = replace(account("a"), datacenter_only=True)
    queue = [waiting("a1", age=9), waiting("b1")]
    decision = decide([pool()], [bound, account("b")], queue)
    assert (order(decision), reasons(decision)) == (["b1"], {"a1": "gridline_capacity"})
    assert order(decide([pool(name="dc1")], [bound, account("b")], queue)) == ["a1"]


def test_a_pool_that_shrank_below_its_leases_grants_nothing() -> None:
    """More live leases than GPUs is not a negative number of grants."""
    decision = decide([pool(1, live=3)], [account("a")], [waiting("a1")])
    assert reasons(decision) == {"a1": "gridline_capacity"}


def test_one_huge_batch_does_not_starve_a_hundred_small_ones() -> None:
    """Each small batch starts within the first hundred and two grants, though the huge one came first."""
    accounts = {name: account(name) for name in map(chr, range(1000, 1101))}
    huge, *small = accounts
    queue = {huge + "1": waiting(huge + "1", age=99, partitions=100)}
    queue |= {name + "1": waiting(name + "1") for name in small}
    served: list[str] = []
    while len(served) < 102:
        (grant,) = decide([pool()], list(accounts.values()), list(queue.values())).grants
        served.append(grant.batch_id)
        accounts[grant.batch_id[0]] = account(grant.batch_id[0], last_fence=len(served))
        left = queue.pop(grant.batch_id)
        if left.partitions[1:]:
            queue[grant.batch_id] = replace(left, partitions=left.partitions[1:], started=True)
    assert set(served) == {name + "1" for name in accounts}


def test_what_an_operator_holds_gets_nothing_and_gives_way() -> None:
    """The held batch waits for the operator, the next one of its account takes the GPU; a running one grows no more."""
    queue = [
        replace(waiting("a1", age=9), held=True),
        waiting("a2"),
        replace(waiting("b1", live=1), held=True),
    ]
    decision = decide([pool(9, live=1)], [account("a"), account("b", live=1)], queue)
    assert (order(decision), reasons(decision)) == (["a2"], {"a1": "held_by_operator"})


def test_at_the_platforms_limit_nothing_starts() -> None:
    """With nothing left only what has started goes on, be its first grant claimed or not; the rest says why."""
    queue = [waiting("a1", age=9), waiting("b1", live=1), replace(waiting("c1"), started=True)]
    accounts = [account("a"), account("b", live=1), account("c")]
    for left in (0, -5):
        decision = decide([pool(9, live=1)], accounts, queue, budget_nanos=left)
        assert sorted(order(decision)) == ["b1", "c1"]
        assert reasons(decision) == {"a1": "platform_daily_limit"}
    assert sorted(order(decide([pool(9, live=1)], accounts, queue, budget_nanos=1))) == ["a1", "b1", "c1"]


def test_each_start_takes_its_hold_of_what_is_left() -> None:
    """In the queue's order, until nothing is left: the last start may pass the limit, none follows it."""
    queue = [replace(waiting(name + "1", age=age), hold_nanos=40) for age, name in enumerate("dcba")]
    accounts = [account(name) for name in "abcd"]
    assert order(decide([pool(9)], accounts, queue, budget_nanos=100)) == ["a1", "b1", "c1"]
    assert order(decide([pool(9)], accounts, queue, budget_nanos=80)) == ["a1", "b1"]
    # Its further partitions are no starts.
    grown = [replace(waiting("a1", partitions=5), hold_nanos=40)]
    assert len(order(decide([pool(9)], accounts, grown, budget_nanos=1))) == 4


def test_a_long_queue_is_decided_in_a_moment() -> None:
    """A thousand batches of 500 accounts and 8 GPUs: well below the allocator's two seconds."""
    accounts = [account(chr(1000 + number)) for number in range(500)]
    queue = [
        waiting(f"{chr(1000 + number % 500)}{number}", age=number, partitions=20) for number in range(1000)
    ]
    took = []
    for _ in range(5):
        started = time.perf_counter()
        decision = decide([pool(8)], accounts, queue)
        took.append(time.perf_counter() - started)
    assert (len(decision.grants), len(decision.waits)) == (8, 992)
    assert min(took) < 0.1  # a few milliseconds on an idle core


PLACES = st.lists(
    st.builds(
        waiting,
        st.sampled_from(["a1", "a2", "b1", "b2", "c1"]),
        age=st.integers(0, 3),
        window=st.sampled_from(["24h", "72h"]),
        partitions=st.integers(1, 3),
        live=st.integers(0, 2),
    ),
    unique_by=lambda one: one.batch_id,
)


@pytest.mark.thorough
@given(queue=PLACES, gpus=st.integers(0, 6), most=st.integers(0, 3), seed=st.integers())
def test_whatever_the_queue(queue: Sequence[Candidate], gpus: int, most: int, seed: int) -> None:
    """No limit is passed, no GPU idles while a batch could use it, and only the rows' content decides."""
    live = Counter({one.account_id: 0 for one in queue})
    for one in queue:
        live[one.account_id] += one.live
    accounts = [account(name, leases_max=most, live=count) for name, count in live.items()]
    pools = [pool(gpus, live=sum(live.values()))]
    decision = decide(pools, accounts, queue)

    for grant in decision.grants:
        live[grant.batch_id[0]] += 1
    assert all(live[one.id] <= max(most, one.live) for one in accounts)
    assert len(decision.grants) <= max(0, gpus - sum(one.live for one in queue))
    granted = set(order(decision))
    for one in queue:
        left = len(one.partitions) - order(decision).count(one.batch_id)
        idle = gpus - sum(live.values())
        assert not (left and idle > 0 and live[one.account_id] < most)
        assert (one.batch_id in reasons(decision)) == (one.live == 0 and one.batch_id not in granted)
    mixed = random.Random(seed).sample(list(queue), len(queue))
    assert set(decide(pools, accounts, mixed).grants) == set(decision.grants)


@pytest.mark.parametrize("queue", [[], [waiting("a1")]])
def test_without_pools_everybody_waits(queue: list[Candidate]) -> None:
    """No pool is no grant, and no error."""
    decision = decide([], [account("a")], queue)
    assert (decision.grants, len(decision.waits)) == ((), len(queue))
