"""A whole file checked: every bad line, tokens and ceilings, partitions, refused lines."""

import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gridline.lines.checking import Checked, check_file
from gridline.lines.errors import ModelNotPrepared
from gridline.lines.partitions import cut, read_ids
from gridline.lines.rules import Rules
from gridline.lines.segments import read_rows
from gridline.storage import layout
from gridline.storage.objects import Store

from .conftest import BATCH, CARDS, CHAT, EMBEDDINGS, FILE_KEY, Check, card, chat_line, embedding_line, jsonl

PROMPT = len("u:Say ok;a:")


def found(checked: Checked) -> list[tuple[str, int | None]]:
    """Code and line of every error."""
    return [(error.code, error.line) for error in checked.errors]


def rows(store: Store, partition: int) -> list[dict[str, object]]:
    """A partition's rows, their bodies parsed."""
    table = pq.read_table(io.BytesIO(store.read(layout.partition_lines_key(BATCH, partition))))
    assert table.schema.metadata[b"format"] == b"1"
    return [{**row, "body": json.loads(row["body"])} for row in table.to_pylist()]


def objects(store: Store) -> dict[str, bytes]:
    """Everything the batch has in the store."""
    return {key: store.read(key) for key in store.list(layout.batch_prefix(BATCH))}


def test_good_file(check: Check, store: Store) -> None:
    """Counts, ceiling and partition of a small file are exact, and bodies are ready for the engine."""
    checked = check(chat_line("a", user="u", n=2), chat_line("b", max_tokens=None))
    assert (checked.errors, checked.total, checked.refused) == ((), 2, 0)
    assert checked.card is CARDS["tiny-chat"]
    assert checked.input_tokens == 2 * PROMPT
    assert checked.ceiling_nanos == 2 * PROMPT * 10 + (2 * 8 + 1024) * 20
    assert [(plan.number, plan.lines, plan.tokens) for plan in checked.partitions] == [
        (0, 2, 2 * PROMPT + 1040)
    ]
    first, second = rows(store, 0)
    assert (first["line"], first["custom_id"], first["input_tokens"]) == (0, "a", PROMPT)
    assert first["body"] == {**chat_line(n=2)["body"], "max_tokens": 8}
    assert second["body"] == {**chat_line()["body"], "max_tokens": 1024}


def test_spec(check: Check, store: Store) -> None:
    """A partition's spec tells a GPU job its model, endpoint and lines."""
    check(chat_line())
    assert json.loads(store.read(layout.partition_spec_key(BATCH, 0))) == {
        "format": 1,
        "batch_id": BATCH,
        "partition": 0,
        "endpoint": CHAT,
        "model": {
            "id": "tiny-chat",
            "commit": "0" * 40,
            "dtype": "float32",
            "kind": "chat",
            "context_tokens": 8192,
            "engine_arguments": ["--dtype", "float32"],
            "adapters_by_rank": [],
        },
        "adapters": [],
        "lines_key": layout.partition_lines_key(BATCH, 0),
        "lines": 1,
        "line_seconds_max": 600,
    }


def test_second_pass_changes_nothing(check: Check, store: Store) -> None:
    """A task that runs twice writes the same bytes."""
    lines = [chat_line(f"{number}", max_tokens=1024) for number in range(40)]
    first = check(*lines)
    before = objects(store)
    assert check(*lines) == first
    assert objects(store) == before
    assert len(first.partitions) > 1


def test_all_bad_lines_are_listed_in_file_order(check: Check, store: Store) -> None:
    """Every bad line has its entry with the physical line, and nothing is written."""
    checked = check(
        chat_line("a"),
        b"",
        b"not json",
        {"custom_id": "c"},
        chat_line("d", temperature=3),
        chat_line("e"),
        chat_line("a"),
        {**chat_line("f"), "url": EMBEDDINGS},
    )
    assert found(checked) == [
        ("invalid_json_line", 3),
        ("missing_required_parameter", 4),
        ("invalid_request", 5),
        ("duplicate_custom_id", 7),
        ("invalid_url", 8),
    ]
    assert (checked.errors_total, checked.total, checked.partitions) == (5, 7, ())
    assert checked.errors[2].as_dict() == {
        "code": "invalid_request",
        "message": "Invalid 'temperature': expected 0 to 2, but got 3 instead.",
        "param": "body.temperature",
        "line": 5,
    }
    assert objects(store) == {}


def test_case_3_no_requests(check: Check) -> None:
    """A file of blank lines has no requests."""
    checked = check(data=b"\n \r\n\n")
    assert found(checked) == [("invalid_request", None)]
    assert checked.errors[0].message == "The file has no requests."


def test_case_5_long_list_of_errors_is_cut(check: Check) -> None:
    """A hundred entries are listed, all are counted, and the list stays small."""
    checked = check(*[{"custom_id": "x" * 500, "params": {}} for _ in range(300)])
    assert (len(checked.errors), checked.errors_total) == (100, 300)
    assert len(json.dumps([error.as_dict() for error in checked.errors])) < 100_000


def test_case_8_duplicate_custom_id(check: Check) -> None:
    """The second use is refused in OpenAI's words, naming both lines; look-alikes are different ids."""
    checked = check(*[chat_line(one) for one in ("a", "A", "a ", "b", "a")])
    assert found(checked) == [("duplicate_custom_id", 5)]
    assert checked.errors[0].message == (
        "The custom_id 'a' for this request is a duplicate of another request. The custom_id parameter must be unique "
        "for each request in a batch. It was first used on line 1."
    )


def test_case_12_long_line(check: Check) -> None:
    """A line over 8 MiB is one bad line; the lines around it are read."""
    checked = check(chat_line("a"), chat_line("b", user="x" * (9 << 20)), chat_line("c", n=0))
    assert found(checked) == [("invalid_request", 2), ("invalid_request", 3)]


def test_case_21_most_requests(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of requests is inclusive, and reading stops one after it."""
    monkeypatch.setattr("gridline.lines.checking.FILE_LINES_MAX", 3)
    assert check(*[chat_line(f"{number}") for number in range(3)]).errors == ()
    checked = check(*[chat_line(f"{number}") for number in range(6)])
    assert (found(checked), checked.total) == ([("invalid_request", 4)], 3)


@pytest.mark.parametrize("name", ["gpt-4o-mini", "ft:tiny-chat:x:y", "", "tiny-embed"])
def test_case_72_models_that_the_endpoint_does_not_serve(check: Check, name: str) -> None:
    """Unknown models and models of the other endpoint are not found, in OpenAI's words."""
    checked = check(chat_line(model=name))
    assert found(checked) == [("model_not_found", 1)]
    assert checked.errors[0].message.startswith(f"The provided model '{name}' is not supported by ")
    assert (checked.errors[0].param, checked.card) == ("body.model", None)


def test_one_model_a_batch(check: Check) -> None:
    """A second model is refused on each of its lines; the first line's model is the batch's."""
    checked = check(
        chat_line("a"), chat_line("b", model="other-chat"), chat_line("c", model="nope"), chat_line("d")
    )
    assert found(checked) == [("mismatched_model", 2), ("model_not_found", 3)]
    assert checked.card is CARDS["tiny-chat"]


@pytest.mark.parametrize("before", [(), (chat_line("first"),)], ids=["alone", "after another"])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (None, "Model parameter is required."),
        (5, "Invalid type for 'model'"),
        ([], "Invalid type for 'model'"),
        ({"id": "tiny-chat"}, "Invalid type for 'model'"),
    ],
)
def test_model_missing(
    check: Check, model: object, message: str, before: tuple[dict[str, object], ...]
) -> None:
    """A line without a usable model is refused at body.model, whatever stands before it."""
    (error,) = check(*before, chat_line(model=model)).errors
    assert error.message.startswith(message)
    assert (error.code, error.param) == ("invalid_request", "body.model")


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "filled"),
    [
        (8000, 1024, None),
        (8191, 1, 1),
        (8192, None, None),
        (9000, None, None),
        (8000, None, 192),
        (7168, 1024, 1024),
    ],
)
def test_case_60_context(
    check: Check, store: Store, prompt: int, max_tokens: int | None, filled: int | None
) -> None:
    """Prompt and answer must fit together; without max_tokens the answer gets the room that is left."""
    # Two tokens a character, so that the text's length alone settles nothing.
    tokens = prompt - len("u:;a:")
    content = "é" * (tokens // 2) + "x" * (tokens % 2)
    message = [{"role": "user", "content": content}]
    checked = check(chat_line("long", messages=message, max_tokens=max_tokens), chat_line("short"))
    assert checked.errors == ()
    if filled is not None:
        assert (checked.refused, rows(store, 0)[0]["body"]["max_tokens"]) == (0, filled)  # type: ignore[index]
        return
    (row,) = read_rows(store.read(layout.refused_key(BATCH)))
    error = json.loads(row.body)["error"]
    assert (row.line, row.custom_id, row.status_code, row.code) == (0, "long", 400, "context_length_exceeded")
    assert (error["code"], error["type"], error["param"]) == (row.code, "invalid_request_error", "messages")
    assert "8192" in error["message"]
    assert f"({prompt} in the messages, {max_tokens or 1} in the completion)" in error["message"]
    assert (row.input_tokens, row.output_tokens, row.model) == (0, 0, "tiny-chat")
    assert checked.ceiling_nanos == PROMPT * 10 + 8 * 20
    assert [one["line"] for one in rows(store, 0)] == [1]


def test_case_12_longer_than_any_prompt(check: Check, store: Store) -> None:
    """A text that cannot fit whatever its tokens are is refused uncounted, with both numbers."""
    checked = check(chat_line(messages=[{"role": "user", "content": "x" * (6 << 20)}]))
    (row,) = read_rows(store.read(layout.refused_key(BATCH)))
    assert (checked.refused, row.code) == (1, "context_length_exceeded")
    assert f"{(6 << 20) + 5} characters" in row.body
    assert "8192 tokens" in row.body


def test_template_refusal_is_an_error_line(check: Check, store: Store) -> None:
    """A conversation that the model's template refuses fails alone."""
    checked = check(chat_line("a", messages=[{"role": "user", "content": "FORBIDDEN"}]), chat_line("b"))
    (row,) = read_rows(store.read(layout.refused_key(BATCH)))
    assert (checked.errors, row.code, "no such word" in row.body) == ((), "invalid_request", True)


def test_every_line_refused(check: Check, store: Store) -> None:
    """Then there is nothing to run and nothing to pay, but the batch has its model."""
    checked = check(chat_line(messages=[{"role": "user", "content": "x" * 9000}]))
    assert (checked.partitions, checked.refused, checked.ceiling_nanos) == ((), 1, 0)
    assert checked.card is CARDS["tiny-chat"]
    assert list(objects(store)) == [layout.refused_key(BATCH)]


def test_embeddings(check: Check, store: Store) -> None:
    """Embedding tokens include the special ones; token ids count as they are; nothing is written by the model."""
    lines = [
        embedding_line("a"),
        embedding_line("b", input=["w1", "w1 w2 w3"]),
        embedding_line("c", input=[3, 4, 5]),
    ]
    checked = check(*lines, endpoint=EMBEDDINGS)
    assert [row["input_tokens"] for row in rows(store, 0)] == [4, 3 + 5, 3]
    assert (checked.input_tokens, checked.ceiling_nanos) == (15, 150)


def test_case_71_out_of_vocabulary(check: Check, store: Store) -> None:
    """A token id that the model lacks fails its line alone, by name."""
    checked = check(embedding_line("a", input=[999_999_999]), embedding_line("b"), endpoint=EMBEDDINGS)
    (row,) = read_rows(store.read(layout.refused_key(BATCH)))
    assert (checked.refused, row.code, "999999999" in row.body) == (1, "invalid_request", True)


def test_case_73_most_inputs_a_batch(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """The inputs of all lines together are limited; the line that goes over is named, once."""
    monkeypatch.setattr("gridline.lines.screening.EMBEDDING_INPUTS_PER_BATCH_MAX", 5)
    lines = [embedding_line(f"{number}", input=["w1", "w2"]) for number in range(4)]
    assert found(check(*lines, endpoint=EMBEDDINGS)) == [("invalid_request", 3)]
    assert check(*lines[:2], endpoint=EMBEDDINGS).errors == ()


@pytest.mark.parametrize(("words", "fits"), [(30, True), (31, False), (100_000, False)])
def test_case_74_long_input(check: Check, store: Store, words: int, fits: bool) -> None:
    """Exactly the context passes; more, in any of a line's inputs, fails that line alone."""
    lines = [embedding_line("a", input=["w1", "w1 " * words]), embedding_line("b")]
    checked = check(*lines, endpoint=EMBEDDINGS)
    assert (checked.errors, checked.refused) == ((), 0 if fits else 1)
    if not fits:
        (row,) = read_rows(store.read(layout.refused_key(BATCH)))
        assert (row.code, "32 tokens" in row.body) == ("context_length_exceeded", True)


def test_case_74_long_token_ids(check: Check) -> None:
    """Inputs given as token ids have the same limit."""
    checked = check(
        embedding_line("a", input=[3] * 32), embedding_line("b", input=[3] * 33), endpoint=EMBEDDINGS
    )
    assert checked.refused == 1


def test_partitions_hold_every_line_once_in_order(
    check: Check, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions follow each other in input order, of about equal weight, no more than a batch may have."""
    monkeypatch.setattr("gridline.lines.partitions.PARTITIONS_PER_BATCH_MAX", 7)
    lines = [chat_line(f"{number}", max_tokens=1 + number % 900) for number in range(2500)]
    checked = check(*lines)
    numbers = [line for plan in checked.partitions for line, _ in read_ids(store, BATCH, plan.number)]
    assert numbers == list(range(2500))
    assert len(checked.partitions) == 7
    weights = [plan.tokens for plan in checked.partitions]
    assert max(weights) < 1.1 * min(weights)


@pytest.mark.parametrize(
    ("weights", "parts"),
    [([1], 1), ([10], 1), ([6, 6], 2), ([11, 1, 1], 2), ([1] * 21, 3), ([10] * 1000, 100), ([0], 1)],
)
def test_cut(weights: list[int], parts: int) -> None:
    """As many partitions as fill ten tokens each, never more than a batch may have, none empty."""
    plans = cut(weights, 10)
    assert sum(plan.lines for plan in plans) == len(weights)
    assert sum(plan.tokens for plan in plans) == sum(weights)
    assert [plan.number for plan in plans] == list(range(len(plans)))
    assert all(plan.lines for plan in plans)
    assert len(plans) == parts


def test_model_not_prepared(store: Store, tmp_path: Path) -> None:
    """A missing tokenizer is no fault of the file: the step fails and may be tried again."""
    store.replace(FILE_KEY, jsonl(chat_line()))
    with pytest.raises(ModelNotPrepared):
        check_file(
            store,
            Rules(CHAT, {"tiny-chat": card("tiny-chat")}),
            file_key=FILE_KEY,
            batch_id=BATCH,
            models_folder=tmp_path,
        )
