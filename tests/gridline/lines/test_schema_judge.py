"""The judge: every schema ends within its bound, the process that judges can be lost, and none is left over."""

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from gridline.limits import SCHEMA_DEPTH_MAX
from gridline.lines import schema_judge, schema_trial
from gridline.lines.errors import JudgeUnavailable
from gridline.lines.schema_judge import SchemaJudge
from gridline.settings import ROOT
from tests.stack import command_of

pytestmark = pytest.mark.programs

Schema = dict[str, Any]
TWICE_THIRTY_TIMES: Schema = {
    "$defs": {
        **{
            f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
            for n in range(30)
        },
        "d30": {"type": "string"},
    },
    "$ref": "#/$defs/d0",
}
"""Names one schema 2**30 times: the engine's library remembers it, the one that checks answers walks them all."""
HUGE = {"type": "array", "minItems": 10**7, "items": {"type": "string"}}
"""Takes all the memory that there is; refused unseen for its count, so the judge is asked directly."""
BOMBS: dict[str, Schema] = {
    "pattern": {"type": "string", "pattern": "^[a-z ]*a[a-z ]{300}$"},
    "allOf": {"type": "string", "allOf": [{"pattern": f"^.*{letter}.*$"} for letter in "abcdefghijklmnop"]},
    "oneOf": {
        "type": "string",
        "allOf": [{"oneOf": [{"minLength": n}, {"maxLength": n}]} for n in range(12)],
    },
    "properties": {"properties": {f"p{n}": {"type": "string", "maxLength": 9_999} for n in range(900)}},
    "$ref": {"$anchor": "a", "$ref": "#a"},
    "'$ref' or 'required' leads back": {"$defs": {"a": {"$id": "x:y", "$ref": "x:y"}}, "$ref": "x:y"},
    "nested deeper": json.loads('{"items":' * 65 + "{}" + "}" * 65),
}
ORDINARY: list[Schema] = [
    {},
    {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]},
    {"type": "string", "pattern": r"^[\w.-]+@[\w-]+(\.[\w-]+)+$"},
    {"type": "string", "pattern": r"^(\w+\s){2,10}\w+[.!?]$"},
    {"type": "string", "minLength": 200, "maxLength": 10_000},
    {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(300)}},
    {"type": "array", "items": {"type": "string", "format": "date-time"}, "maxItems": 1_000},
    {"$defs": {"t": {"type": "object", "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}},
     "$ref": "#/$defs/t"},
    {"enum": [{"pattern": "("}, 5]},
    json.loads('{"items":' * 63 + "{}" + "}" * 63),
]  # fmt: skip


def children() -> set[psutil.Process]:
    """The judging processes of this process."""
    found = psutil.Process().children()
    return {one for one in found if schema_judge.PROGRAM in command_of(one)}


@pytest.fixture(scope="module")
def worded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaJudge]:
    """A judge whose tokens are bytes and some thousand made-up words, as a real model's are bytes and words."""
    chance = random.Random(1)
    words = {
        "".join(chance.choices("aeinorst" * 3 + "bcdfghjklmpquvwxyz", k=chance.randint(2, 9)))
        for _ in range(9_000)
    }
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words |= {f"Ġ{word}" for word in list(words)[:4_000]} - set(alphabet)
    tokenizer = Tokenizer(BPE(vocab={one: n for n, one in enumerate([*alphabet, *sorted(words)])}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    path = tmp_path_factory.mktemp("worded") / "tokenizer.json"
    tokenizer.save(str(path))
    with SchemaJudge(path) as one:
        yield one


@pytest.mark.parametrize("keyword", BOMBS)
def test_explosive_schemas_are_refused_by_keyword(worded: SchemaJudge, keyword: str) -> None:
    """Schemas that would make more and more work on the engine, or none at all, are told why."""
    assert keyword in str(worded.problem_of(json.dumps(BOMBS[keyword])))


@pytest.mark.parametrize("schema", ORDINARY)
def test_ordinary_schemas_pass(worded: SchemaJudge, schema: Schema) -> None:
    """Schemas that people write pass, long texts and recursion included."""
    assert worded.problem_of(json.dumps(schema)) is None


def test_memory_is_bounded() -> None:
    """A schema that takes more than its memory loses only the judge, and the next schema gets another one."""
    program = (
        "import resource, sys\n"
        "from gridline.lines.schema_judge import SchemaJudge\n"
        "with SchemaJudge() as judge:\n"
        "    print(judge._judged(sys.argv[1]))\n"
        "    print(judge.problem_of('{}'))\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(HUGE)], capture_output=True, text=True, check=True
    )
    refused, passed, megabytes = done.stdout.splitlines()
    # On a slow machine its time may be over first.
    assert re.fullmatch(r"judging it takes more than .* (512 MiB|5 seconds): simplify it\.", refused)
    assert passed == "None"
    assert int(megabytes) < 700


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that takes more than its time is refused by its keywords, and the next one is judged anew."""
    monkeypatch.setattr(schema_judge, "SCHEMA_JUDGED_SECONDS_MAX", 1)
    with SchemaJudge() as judge:
        judge.problem_of("{}")
        started = time.monotonic()
        found = judge.problem_of(json.dumps(TWICE_THIRTY_TIMES))
        assert 1 <= time.monotonic() - started < 5
        assert found == "judging it takes more than the limit of 1 seconds: simplify 'allOf', '$ref'."
        assert judge.problem_of('{"type": "string"}') is None


def test_a_file_has_its_time() -> None:
    """When the schemas of a file took their time together, known ones keep their verdict and others are refused."""
    with SchemaJudge() as judge:
        assert judge.problem_of("{}") is None
        judge._seconds_left = 1
        assert judge.problem_of(json.dumps(TWICE_THIRTY_TIMES)) == schema_judge.TOO_MANY
        assert judge.problem_of('{"type": "string"}') == schema_judge.TOO_MANY
        assert judge.problem_of("{}") is None
    assert "Put fewer different schemas into a file" in schema_judge.TOO_MANY


def test_a_schema_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty thousand lines with one schema ask the judge once, whatever the verdict."""
    asked: list[str] = []
    ask = schema_judge._asked

    def noted(*given: Any) -> Any:
        asked.append(given[1])
        return ask(*given)

    monkeypatch.setattr(schema_judge, "_asked", noted)
    with SchemaJudge() as judge:
        for _ in range(50_000):
            judge.problem_of('{"type":"objct"}')
            judge.problem_of("{}")
    assert asked == ['{"type":"objct"}', "{}"]


def test_no_judge_without_a_schema() -> None:
    """A file without schemas starts no process, and none outlives its file."""
    before = children()
    with SchemaJudge() as judge:
        assert children() == before
        judge.problem_of("{}")
        (child,) = children() - before
    assert not child.is_running()
    assert children() == before


def test_the_judge_dies_with_its_parent() -> None:
    """A validating process that is killed leaves no judge behind, not even one that is busy."""
    program = (
        "import json, sys, threading\n"
        "from gridline.lines.schema_judge import SchemaJudge\n"
        "judge = SchemaJudge()\n"
        "judge.problem_of('{}')\n"
        "print(judge._child.pid, flush=True)\n"
        "judge.problem_of(sys.stdin.read())\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin
        assert parent.stdout
        child = psutil.Process(int(parent.stdout.readline()))
        parent.stdin.write(json.dumps(TWICE_THIRTY_TIMES))
        parent.stdin.close()
        while child.cpu_times().user < 0.3:
            time.sleep(0.01)
        parent.kill()
        parent.wait()
        child.wait(timeout=5)


def test_a_judge_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that cannot judge says so; the schema is not blamed, and nothing is left over."""
    before = psutil.Process().children()
    monkeypatch.setattr(schema_judge, "PROGRAM", "gridline.lines.there_is_no_such_program")
    with SchemaJudge() as judge, pytest.raises(JudgeUnavailable):
        judge.problem_of("{}")
    assert psutil.Process().children() == before


@pytest.mark.parametrize("content", ["", "{}", "no tokenizer"])
def test_a_tokenizer_that_cannot_be_read(tmp_path: Path, content: str) -> None:
    """A model whose tokenizer the library cannot read is judged by bytes."""
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with SchemaJudge(path) as judge:
        assert judge.problem_of("{}") is None
        assert "objct" in str(judge.problem_of('{"type": "objct"}'))


@pytest.mark.engine
def test_the_engine_builds_what_was_judged() -> None:
    """VLLM's backend builds a schema with the defaults that the judge has, with the library's own limits."""
    vllm = ROOT / ".venv-engine/lib/python3.11/site-packages/vllm"
    backend = (vllm / "v1/structured_output/backend_guidance.py").read_text()
    assert schema_trial.ENGINE_DEFAULTS == {"whitespace_flexible": True}
    assert backend.count("grammar_from_json_schema(") == 2
    assert backend.count('"whitespace_flexible": not disable_any_whitespace') == 2
    assert "disable_any_whitespace: bool = False" in backend
    assert "limits" not in backend
    params = (vllm / "sampling_params.py").read_text()
    assert f"MAX_STRUCTURED_OUTPUT_JSON_NESTING = {SCHEMA_DEPTH_MAX}\n" in params
