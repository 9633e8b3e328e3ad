"""One hostile file of each kind through the whole stack: each batch ends, and the stack goes on as if nothing was."""

from collections.abc import Iterator
from typing import Any

import pytest

from gridline import limits
from gridline.catalog.cards import catalogue
from gridline.errors import Refused
from gridline.files.checking import InputCheck
from gridline.lines.errors import LineRefused
from gridline.lines.reading import physical_lines
from gridline.lines.rules import Rules
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.screening import Screening
from gridline.settings import read_settings
from tests.hostile.files import CANARY, CHAT_MODEL, EMBEDDING_MODEL, KINDS, HostileFile, hostile_file
from tests.stack import ENDED, Customer, Stack, chat_line, command_of, eventually

pytestmark = [pytest.mark.conformance, pytest.mark.stack, pytest.mark.deep, pytest.mark.timeout(2_400)]

LINES_RUN_MAX = 8
"""More good lines than this would measure the engine's patience."""
ENDS_SECONDS_MAX = 1_500


def taken_at_upload(file: HostileFile) -> bool:
    """Whether an upload takes the file: others never reach a batch."""
    check = InputCheck(bytes_max=limits.FILE_BYTES_MAX, lines_max=limits.FILE_LINES_MAX)
    try:
        check.feed(file.data)
        check.finish()
    except Refused:
        return False
    return True


def runs_little(file: HostileFile) -> bool:
    """Whether the file has a bad line, or few lines."""
    models = {name: catalogue()[name] for name in (CHAT_MODEL, EMBEDDING_MODEL)}
    with SchemaJudge() as judge:
        screen = Screening(
            Rules(file.endpoint, models), models_folder=read_settings({}).models_folder, judge=judge
        )
        for number, line in enumerate(physical_lines([file.data])):
            if number == LINES_RUN_MAX:
                return False
            try:
                screen.read(line)
            except LineRefused:
                return True
    return True


def one_of_each_kind() -> Iterator[HostileFile]:
    """For every kind its first file that an upload takes and that keeps the engine for seconds only."""
    for place in range(len(KINDS)):
        seeds = range(place, 200 * len(KINDS), len(KINDS))
        files = (hostile_file(seed) for seed in seeds)
        yield next(file for file in files if taken_at_upload(file) and runs_little(file))


def created(customer: Customer, file: HostileFile) -> str:
    """The id of the file's batch."""
    uploaded = customer.openai.files.create(file=("input.jsonl", file.data), purpose="batch")
    endpoint: Any = file.endpoint
    batch = customer.openai.batches.create(
        input_file_id=uploaded.id, endpoint=endpoint, completion_window="24h"
    )
    return str(batch.id)


def programs(stack: Stack) -> dict[str, int]:
    """Every program of the stack by name, with its process."""
    with stack.supervisor() as supervisor:
        return {one["name"]: one["pid"] for one in supervisor.getAllProcessInfo()}


def engines(stack: Stack) -> set[int]:
    """The processes of warm engines."""
    return {one.pid for one in stack.processes() if "EngineCore" in one.name() or "VLLM" in one.name()}


def test_hostile_files_through_the_stack(stack: Stack) -> None:
    """Twenty-one batches of hostile files end by themselves, a good one then completes, and no program was restarted."""
    customer = stack.customer("hostile-files")
    stack.gridline("ops", "limit", "hostile-files", "--open-batches", "100", "--why", "test")
    warm = customer.create([chat_line(0, "Say yes.", tokens=4)])
    assert customer.finished(warm.id, seconds=400).status == "completed"
    before, engines_before = programs(stack), engines(stack)

    files = list(one_of_each_kind())
    batches = {created(customer, file): file for file in files}
    found: dict[str, Any] = {}

    def all_ended() -> bool:
        for batch_id in batches.keys() - found.keys():
            batch = customer.openai.batches.retrieve(batch_id)
            if batch.status in ENDED:
                found[batch_id] = batch
        return len(found) == len(batches)

    eventually(all_ended, seconds=ENDS_SECONDS_MAX, what="every hostile batch ends", every=2)
    for batch_id, file in batches.items():
        batch = found[batch_id]
        assert batch.status in {"completed", "failed"}, str(file)
        assert CANARY not in batch.model_dump_json(), str(file)
        if batch.status == "failed":
            assert all(error.code and error.message for error in batch.errors.data), str(file)
    assert {"completed", "failed"} == {batch.status for batch in found.values()}

    after = customer.create([chat_line(0, "Say yes.", tokens=4)])
    assert customer.finished(after.id, seconds=300).status == "completed"
    assert programs(stack) == before
    assert engines_before <= engines(stack)
    assert not [one for one in stack.processes() if "schema_trial" in command_of(one)]
    assert "The books hold" in stack.gridline("books")
