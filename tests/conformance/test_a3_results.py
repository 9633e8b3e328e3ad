"""Rows 38 to 46: what polls and result files show of good, refused and mixed batches."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
from openai.types import Batch

from tests.conformance.batch_service import EMBEDDINGS_ENDPOINT, Ended, Service
from tests.conformance.watching import bodies, by_line, check_way, failures, texts

TOO_LONG = [{"role": "user", "content": "word " * 9_000}]
LINES = 1_000
OVERLONG = {0, 499, 999}
STANDSTILL_SECONDS = 30
MOVES_SECONDS = 15


@pytest.fixture(scope="module")
def thousand(service: Service) -> Ended:
    """A thousand lines of mixed lengths, three of which are over the context; embeddings, which are quick."""
    texts_ = [f"text {number}" + " more" * (number * 7 % 50) for number in range(LINES)]
    for number in OVERLONG:
        texts_[number] = "word " * (service.embedding_context + 10)
    lines = [service.embedding_line(f"n-{number}", text) for number, text in enumerate(texts_)]
    return service.run(lines, EMBEDDINGS_ENDPOINT)


def values(found: Any) -> Iterator[Any]:
    """Every value inside a JSON value, itself included."""
    yield found
    inside: list[Any] = []
    if isinstance(found, dict):
        inside = list(found.values())
    elif isinstance(found, list):
        inside = found
    for one in inside:
        yield from values(one)


def test_case_38_every_line_failed(service: Service) -> None:
    """A batch whose lines all fail is completed without an output file, costs nothing, and stays as it ended."""
    ended = service.run([service.chat_line(str(number), messages=TOO_LONG) for number in range(3)])
    batch = ended.batch
    assert batch["status"] == "completed"
    assert batch["output_file_id"] is None
    assert batch["error_file_id"]
    counts = batch["request_counts"]
    assert (counts["completed"], counts["failed"], counts["total"]) == (0, 3, 3)
    assert {batch["usage"][name] for name in ("input_tokens", "output_tokens", "total_tokens")} == {0}
    assert set(failures(ended).values()) == {"context_length_exceeded"}
    facts = service.facts(batch)
    assert not facts or facts["cost"] == "0.000000000"
    assert all(service.batch(batch["id"]) == batch for _ in range(20))


def test_case_39_absent_values_are_null(service: Service) -> None:
    """Every answer about a batch has every key of the SDK's model; what is not there yet is null, never "" or 0."""
    created = service.created([service.chat_line("a"), service.chat_line("b")])
    polls = list(service.polls(created["id"]))
    listed = service.http.get("/batches", params={"limit": 100}).json()["data"]
    shown = [created, *polls, *(one for one in listed if one["id"] == created["id"])]
    assert polls[-1]["status"] == "completed"
    for batch in shown:
        assert Batch.model_fields.keys() <= batch.keys()
        assert "" not in list(values(batch)), batch
        times = {name: value for name, value in batch.items() if name.endswith("_at")}
        assert all(value is None or (type(value) is int and value > 0) for value in times.values()), times
        assert batch["error_file_id"] is None
        assert batch["errors"] is None
        assert batch["metadata"] is None
    assert shown[-1] == polls[-1]


def test_case_40_counts_are_live(service: Service) -> None:
    """Counts are always there, never go back, never pass the total, and move at least every 30 s while work is done."""
    many = 24
    lines = service.story_lines(many)
    created = service.created(lines)
    done, moved, longest = 0, time.monotonic(), 0.0
    partial: set[int] = set()
    seen = []
    for batch in service.polls(created["id"], seconds=300):
        seen.append(batch)
        counts = batch["request_counts"]
        now = counts["completed"] + counts["failed"]
        assert done <= now <= counts["total"], counts
        if batch["status"] == "validating":
            assert (now, counts["total"] in {0, many}) == (0, True)
        else:
            assert counts["total"] == many
        if now != done or done == 0:
            moved = time.monotonic()
        longest = max(longest, time.monotonic() - moved)
        partial.add(now)
        done = now
    assert (seen[-1]["status"], done) == ("completed", many)
    assert longest < STANDSTILL_SECONDS
    took = seen[-1]["completed_at"] - seen[-1]["in_progress_at"]
    assert partial - {0, many} or took < MOVES_SECONDS, "no poll saw the batch halfway"
    check_way(seen)


def test_case_41_failures_are_counted_and_explained(service: Service) -> None:
    """Seven good lines and three over the context are 7/3/10, and each failure has its status and its code."""
    lines = [
        service.chat_line(str(number), **({"messages": TOO_LONG} if number % 3 == 1 else {}))
        for number in range(10)
    ]
    ended = service.run(lines)
    counts = ended.batch["request_counts"]
    assert (counts["completed"], counts["failed"], counts["total"]) == (7, 3, 10)
    assert failures(ended) == dict.fromkeys(["1", "4", "7"], "context_length_exceeded")
    assert {one["response"]["status_code"] for one in ended.err} == {400}


def test_case_42_completed_means_complete(service: Service) -> None:
    """At the first poll that says completed the files hold every line, however slow some of the answers were."""
    files = {
        size: [service.chat_line(f"{size}-{n}", max_tokens=1 if n % 2 else 8) for n in range(size)]
        for size in (1, 2, 6, 25)
    }
    made = {size: service.created(lines) for size, lines in files.items()}
    for size, lines in files.items():
        batch = service.finished(made[size]["id"], seconds=300)
        assert batch["status"] == "completed"
        ended = service.ended(batch, lines)
        assert len(ended.out) == size
        assert ended.batch["request_counts"]["completed"] == size


def test_case_44_unknown_models(service: Service) -> None:
    """Models that are not there, of another account, or beside the batch's one, are refused by line and key."""
    without = service.chat_line("none")
    del without["body"]["model"]
    wrong = ["gpt-4o-mini", "", f"ft:{service.chat}:someone-else::abc123", f"{service.chat} "]
    lines = [service.chat_line(f"m{number}", model=name) for number, name in enumerate(wrong)]
    mixed = service.chat_line("mixed", model=service.embedding)
    errors = by_line(service.expect_fail([service.chat_line("good"), *lines, mixed, without]))
    assert sorted(errors) == [2, 3, 4, 5, 6, 7]
    assert {one["param"] for one in errors.values()} == {"body.model"}
    for number, name in enumerate(wrong, 2):
        assert errors[number]["code"] == "model_not_found"
        assert f"'{name}'" in errors[number]["message"]
    assert errors[6]["code"] in {"model_not_found", "mismatched_model"}
    assert errors[7]["message"] == "Model parameter is required."


def test_case_44_answers_are_answers(service: Service) -> None:
    """A good line's answer is a chat completion of the model asked for, with text, a reason to stop, and usage."""
    ended = service.run([service.chat_line("a"), service.chat_line("b")])
    for body in bodies(ended).values():
        assert body["object"] == "chat.completion"
        assert body["model"] == service.chat
        assert body["id"].startswith("chatcmpl-")
        assert type(body["created"]) is int
        assert texts(body)[0]
        assert body["choices"][0]["message"]["role"] == "assistant"
        assert body["choices"][0]["finish_reason"] in {"stop", "length"}
        assert body["usage"]["total_tokens"] == (
            body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]
        )
    assert ended.batch["model"] == service.chat
    ids = [one["id"] for one in ended.out] + [one["response"]["request_id"] for one in ended.out]
    assert len(set(ids)) == 4
    assert all(one["id"].startswith("batch_req_") for one in ended.out)


def test_case_45_a_refused_line_shifts_no_answer(service: Service) -> None:
    """Around a prompt that is too long the others keep their own answers."""
    asked = {"s1": "Say apple", "s2": "Count from one to ten, please: one, two, three, four, five"}
    lines = [
        service.chat_line(f"{name}{copy}", messages=[{"role": "user", "content": text}], temperature=0)
        for copy, (name, text) in itertools.product(("", "-again"), asked.items())
    ]
    lines.insert(1, service.chat_line("big", messages=TOO_LONG))
    ended = service.run(lines)
    found = bodies(ended)
    assert list(found) == ["s1", "s2", "s1-again", "s2-again"]
    assert failures(ended) == {"big": "context_length_exceeded"}
    for name in asked:
        assert found[name]["usage"] == found[f"{name}-again"]["usage"]
        assert texts(found[name]) == texts(found[f"{name}-again"])
    assert found["s1"]["usage"]["prompt_tokens"] < found["s2"]["usage"]["prompt_tokens"]


def test_case_46_long_prompts_in_a_long_batch(thousand: Ended) -> None:
    """Of a thousand lines the first, the middle and the last are over the context: the other 997 are delivered."""
    assert thousand.batch["status"] == "completed"
    assert failures(thousand) == {f"n-{number}": "context_length_exceeded" for number in sorted(OVERLONG)}
    assert len(thousand.out) == LINES - len(OVERLONG)


def test_case_56_results_stand_in_input_order(thousand: Ended) -> None:
    """Output lines, and error lines, stand in the order of the input, whatever their lengths."""
    for part in (thousand.out, thousand.err):
        numbers = [int(one["custom_id"].removeprefix("n-")) for one in part]
        assert numbers == sorted(numbers)
