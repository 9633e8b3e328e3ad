"""Collating: every input line once, in input order, whatever happened before."""

import json
import tempfile
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridline.errors import InvariantBroken
from gridline.lines.collating import Collation, collate
from gridline.lines.partitions import BatchOf, PartitionPlan, Spool, write_partitions
from gridline.lines.sealing import seal
from gridline.lines.segments import ResultRow, write_rows
from gridline.lines.sizing import Accepted
from gridline.storage import layout
from gridline.storage.objects import Store

from .conftest import BATCH, CARDS, CHAT
from .segment_rows import row

OUTPUT, ERROR = layout.file_key("acct_1", "file-out"), layout.file_key("acct_1", "file-err")
EXPIRED = ("batch_expired", "Too late.")


def lay(store: Store, *partitions: list[int], refused: tuple[int, ...] = ()) -> None:
    """Write partitions of these lines, and refused lines."""
    with Spool() as spool:
        lines = [line for partition in partitions for line in partition]
        spool.add([Accepted(line, f"id-{line}", "{}", 1, 1, "tiny-chat") for line in lines])
        plans = [PartitionPlan(number, len(part), len(part)) for number, part in enumerate(partitions)]
        write_partitions(store, spool, plans, BatchOf(BATCH, CHAT, CARDS["tiny-chat"]))
    if refused:
        rows = [row(line, code="context_length_exceeded") for line in refused]
        store.replace(layout.refused_key(BATCH), write_rows(rows))


def ran(store: Store, partition: int, attempt: int, segments: list[list[ResultRow]]) -> tuple[int, str]:
    """Close these segments of an attempt."""
    prefix = layout.attempt_prefix(BATCH, partition, attempt, "lease")
    for number, rows in enumerate(segments):
        store.put_once(layout.segment_key(prefix, number), write_rows(rows))
    return attempt, "lease"


def collated(store: Store, partitions: int, missing: tuple[str, str] = EXPIRED) -> Collation:
    """Collate the batch."""
    return collate(
        store,
        batch_id=BATCH,
        account_id="acct_1",
        partitions=range(partitions),
        output_key=OUTPUT,
        error_key=ERROR,
        missing=missing,
    )


def lines(store: Store, key: str) -> list[dict[str, Any]]:
    """The lines of a result file, split at the line feed only; none when there is no file."""
    data = store.read_or_none(key)
    return [json.loads(line) for line in data.decode().removesuffix("\n").split("\n")] if data else []


def custom_ids(store: Store, key: str) -> list[str]:
    """The custom_ids of a result file."""
    return [line["custom_id"] for line in lines(store, key)]


def test_input_order_over_partitions_segments_and_refused_lines(store: Store) -> None:
    """Lines leave in input order though they finished in another and some never ran."""
    lay(store, [0, 2, 3], [4, 6], refused=(1, 5))
    seal(store, BATCH, 0, [ran(store, 0, 1, [[row(3)], [row(2, code="invalid_request"), row(0)]])])
    seal(store, BATCH, 1, [ran(store, 1, 1, [[row(6)]])])
    collation = collated(store, 2)
    assert custom_ids(store, OUTPUT) == ["id-0", "id-3", "id-6"]
    assert custom_ids(store, ERROR) == ["id-1", "id-2", "id-4", "id-5"]
    assert (collation.total, collation.completed, collation.failed, collation.cancelled) == (7, 3, 4, 0)
    assert (collation.input_tokens, collation.output_tokens) == (9, 6)
    assert collation.usage_by_model == {"tiny-chat": [3, 9, 6]}
    never_ran = lines(store, ERROR)[2]
    assert (never_ran["response"], never_ran["error"]) == (
        None,
        {"code": "batch_expired", "message": "Too late."},
    )


def test_files_are_what_is_said_of_them(store: Store) -> None:
    """Bytes and digest are those of the objects, and a file without lines does not exist."""
    lay(store, [0])
    seal(store, BATCH, 0, [ran(store, 0, 1, [[row(0)]])])
    collation = collated(store, 1)
    data = store.read(OUTPUT)
    assert collation.output is not None
    assert (collation.output.bytes, collation.output.sha256) == (len(data), sha256(data).hexdigest())
    assert (collation.error, store.size(ERROR)) == (None, None)


def test_cancelled_lines_are_counted_apart(store: Store) -> None:
    """What was cancelled is no failure."""
    lay(store, [0, 1], refused=(2,))
    seal(store, BATCH, 0, [])
    collation = collated(store, 1, ("batch_cancelled", "Cancelled."))
    assert (collation.completed, collation.failed, collation.cancelled) == (0, 1, 2)
    assert (collation.output, store.size(OUTPUT)) == (None, None)


def test_lost_lines_are_answered(store: Store) -> None:
    """Lines that a fault of ours lost are 500 responses, free of charge."""
    lay(store, [0])
    seal(store, BATCH, 0, [])
    collation = collated(store, 1, ("server_error", "Lost."))
    assert (collation.failed, collation.input_tokens) == (1, 0)
    assert lines(store, ERROR)[0]["response"]["status_code"] == 500


def test_second_call_finds_the_first(store: Store) -> None:
    """Collating again, for another cause, rewrites nothing and gives the first figures and cause."""
    lay(store, [0, 1])
    seal(store, BATCH, 0, [ran(store, 0, 1, [[row(0)]])])
    first = collated(store, 1)
    before = (store.read(OUTPUT), store.read(ERROR))
    store.delete(layout.partition_lines_key(BATCH, 0))
    assert collated(store, 1, ("batch_cancelled", "Cancelled.")) == first
    assert (store.read(OUTPUT), store.read(ERROR)) == before
    assert first.cause == "batch_expired"


def test_call_after_a_crash_writes_the_same_bytes(store: Store) -> None:
    """A call that died before its figures stood is repeated byte for byte, its cause kept."""
    lay(store, [0, 1], refused=(2,))
    seal(store, BATCH, 0, [ran(store, 0, 1, [[row(0)]])])
    first = collated(store, 1)
    before = (store.read(OUTPUT), store.read(ERROR))
    store.delete(layout.collation_key(BATCH))
    assert collated(store, 1, ("server_error", "Other.")) == first
    assert (store.read(OUTPUT), store.read(ERROR)) == before


def test_partition_must_be_sealed(store: Store) -> None:
    """Nothing is collated from a partition that may still change, and no half file is left."""
    lay(store, [0], [1])
    seal(store, BATCH, 0, [ran(store, 0, 1, [[row(0)]])])
    with pytest.raises(InvariantBroken, match="before it is sealed"):
        collated(store, 2)
    assert (store.size(OUTPUT), store.size(layout.collation_key(BATCH))) == (None, None)


def test_files_stay_within_the_account(store: Store) -> None:
    """A key of another account is never written."""
    with pytest.raises(InvariantBroken, match="not a file of acct_2"):
        collate(
            store,
            batch_id=BATCH,
            account_id="acct_2",
            partitions=[],
            output_key=OUTPUT,
            error_key=ERROR,
            missing=EXPIRED,
        )


def test_foreign_rows_do_not_get_in(store: Store) -> None:
    """A row of a line that the partition lacks is left out, and the platform's own custom_id is written."""
    lay(store, [0])
    seal(store, BATCH, 0, [ran(store, 0, 1, [[row(0, custom_id="forged"), row(9)]])])
    assert collated(store, 1).total == 1
    assert custom_ids(store, OUTPUT) == ["id-0"]


def test_first_row_of_a_line_counts(store: Store) -> None:
    """A job that wrote a line twice is paid, and delivered, once: the first."""
    lay(store, [0])
    seal(
        store,
        BATCH,
        0,
        [ran(store, 0, 1, [[row(0, text="first"), row(0, text="second")], [row(0, text="third")]])],
    )
    assert collated(store, 1).usage_by_model == {"tiny-chat": [1, 3, 2]}
    assert [line["response"]["body"]["text"] for line in lines(store, OUTPUT)] == ["first"]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[tuple[int, list[list[ResultRow]]]]]:
    """(lines of each partition, refused lines, attempts as partition and segments) of a batch at random."""
    total = draw(st.integers(1, 24))
    refused = sorted(draw(st.sets(st.integers(0, total - 1), max_size=5)))
    accepted = [line for line in range(total) if line not in refused]
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(accepted) - 1)), max_size=3)))
    bounds = [0, *[one for one in cuts if one < len(accepted)], len(accepted)]
    partitions = [accepted[low:high] for low, high in pairwise(bounds) if low < high]
    attempts = []
    for partition, own in enumerate(partitions):
        for _ in range(draw(st.integers(0, 3))):
            one = st.builds(
                row,
                st.sampled_from(own),
                code=st.sampled_from([None, None, "invalid_request", "server_error"]),
                text=st.text(max_size=4),
            )
            attempts.append((partition, draw(st.lists(st.lists(one, min_size=1, max_size=4), max_size=4))))
    return partitions, refused, attempts


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(histories())
def test_every_input_line_once_and_in_order(
    history: tuple[list[list[int]], list[int], list[tuple[int, list[list[ResultRow]]]]],
) -> None:
    """Output ids and error ids are disjoint, in input order, and together exactly the input ids."""
    partitions, refused, attempts = history
    # Many batches of many small objects: their durability is not what is tested here.
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):
        store = Store(Path(folder).as_uri())
        lay(store, *partitions, refused=tuple(refused))
        made = [
            (partition, ran(store, partition, number, segments))
            for number, (partition, segments) in enumerate(attempts)
        ]
        for partition in range(len(partitions)):
            seal(store, BATCH, partition, [one for of, one in made if of == partition])
        collation = collated(store, len(partitions))
        output, error = custom_ids(store, OUTPUT), custom_ids(store, ERROR)
        delivered = lines(store, OUTPUT)
    expected = [f"id-{line}" for line in sorted([*refused, *(line for part in partitions for line in part)])]
    assert sorted([*output, *error], key=expected.index) == expected
    assert output == [one for one in expected if one in set(output)]
    assert error == [one for one in expected if one in set(error)]
    assert (collation.completed, collation.failed) == (len(output), len(error))
    assert collation.input_tokens == 3 * len(delivered)
    assert len({line["id"] for line in delivered}) == len(delivered)
