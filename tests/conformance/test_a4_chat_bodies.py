"""Rows 57 to 61, 65 and 66: numbers in a chat body, at their limits and past them."""

import math
from typing import Any

import pytest

from tests.conformance.batch_service import Ended, Service
from tests.conformance.watching import (
    bodies,
    by_line,
    engine_pids,
    failures,
    prices,
    refusals,
    refused_keys,
    strict_lines,
    texts,
)

COUNT = [{"role": "user", "content": "Count to 500: one, two, three, four,"}]
STOP_AT_ONCE = [" ", "\n", ".", ","]


def check_hold(service: Service, ended: Ended, *, output_tokens: int) -> None:
    """The hold is made for the prompts and this many tokens written, where the service shows holds and prices."""
    rates = prices(service, service.chat)
    facts = service.facts(ended.batch)
    if rates is None or not facts:
        return
    nanos = ended.batch["usage"]["input_tokens"] * rates[0] + output_tokens * rates[1]
    assert round(float(facts["hold"]) * 10**9) == nanos


def test_case_57_seeds_and_other_whole_numbers(service: Service, request: pytest.FixtureRequest) -> None:
    """A seed is any 64-bit integer; outside, and for n, max_tokens and top_logprobs too, the line is refused by key."""
    before = engine_pids(request)
    wrong: list[Any] = [2**63, 2**64, -(2**63) - 1, 1.5, "100", True]
    huge = [{key: 2**63} for key in ("n", "max_tokens", "max_completion_tokens", "top_logprobs")]
    refused_keys(service, [*({"seed": seed} for seed in wrong), *huge])
    good = [0, -1, 2**63 - 1, -(2**63), None]
    ended = service.run([service.chat_line(str(n), seed=seed) for n, seed in enumerate(good)])
    assert len(ended.out) == len(good)
    assert engine_pids(request) == before or not before, "an engine was started anew"


def test_case_58_sampling_ranges(service: Service) -> None:
    """Temperature, top_p, penalties and stop keep OpenAI's ranges; each value outside is refused by line and key."""
    outside: dict[str, list[Any]] = {
        "temperature": [2.1, -0.1, "0.5", True, 10**400],
        "top_p": [0, 1.1, -1, [0.5]],
        "presence_penalty": [3, -2.1, "1"],
        "frequency_penalty": [3, -2.1],
        "stop": ["", [], ["a"] * 5, ["a", ""], [1], 7],
    }
    refused_keys(service, [{key: value} for key, some in outside.items() for value in some])
    inside: dict[str, list[Any]] = {
        "temperature": [0, 2, None],
        "top_p": [1, 0.01],
        "presence_penalty": [-2, 2],
        "frequency_penalty": [-2, 2],
        "stop": ["###", ["###"] * 4, None],
    }
    given = [{key: value} for key, some in inside.items() for value in some]
    ended = service.run([service.chat_line(str(n), **body) for n, body in enumerate(given)])
    assert len(ended.out) == len(given)


def test_case_58_numbers_that_are_none(service: Service) -> None:
    """NaN, Infinity and numbers that overflow are refused on their lines."""
    line = '{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":{"model":"%s","messages":%s,%s}}'
    said = '[{"role":"user","content":"Say ok"}]'
    odd = ['"temperature":NaN', '"temperature":1e999', '"top_p":Infinity', '"presence_penalty":-Infinity']
    lines = [line % (number, service.chat, said, text) for number, text in enumerate(odd)]
    errors = by_line(service.expect_fail([service.chat_line("good"), *lines]))
    assert sorted(errors) == [2, 3, 4, 5]
    for error in errors.values():
        assert error["code"] == "invalid_json_line" or error["param"] == "body.temperature", error


def test_case_59_both_names_of_the_answer_limit(service: Service) -> None:
    """max_completion_tokens bounds an answer as max_tokens does, the hold too; two different values are refused."""
    conflict, *_ = refusals(service, [{"max_tokens": 50, "max_completion_tokens": 5}])
    assert conflict["param"] == "body.max_completion_tokens"
    assert "50" in conflict["message"]
    assert "5:" in conflict["message"]
    given: list[dict[str, Any]] = [
        {"max_tokens": None, "max_completion_tokens": 5},
        {"max_tokens": 5, "max_completion_tokens": None},
        {"max_tokens": 5, "max_completion_tokens": 5},
    ]
    ended = service.run([service.chat_line(str(n), messages=COUNT, **body) for n, body in enumerate(given)])
    for body in bodies(ended).values():
        assert body["usage"]["completion_tokens"] == 5
        assert body["choices"][0]["finish_reason"] == "length"
    check_hold(service, ended, output_tokens=15)


def test_case_60_prompt_and_answer_in_the_window(service: Service) -> None:
    """Prompt plus max_tokens may fill the window exactly; one more is an error line with both numbers; no cutting."""
    context = service.chat_context

    def prompt(words: int) -> list[dict[str, str]]:
        return [{"role": "user", "content": "word " * words}]

    probe = service.run([service.chat_line("p", messages=prompt(10), max_tokens=1)])
    around = bodies(probe)["p"]["usage"]["prompt_tokens"] - 10
    (over_cap,) = refusals(service, [{"max_tokens": 1_025}])
    assert over_cap["param"] == "body.max_tokens"
    assert "1024" in over_cap["message"]
    asked: dict[str, tuple[int, int | None]] = {  # (tokens of the prompt, max_tokens)
        "8000+1024": (context - 192, 1_024),
        "8191+2": (context - 1, 2),
        "8192": (context, 1),
        "8192+none": (context, None),
        "9000": (context + 808, 1),
        "8191+1": (context - 1, 1),
        "8189+none": (context - 3, None),
        "short": (around + 1, 4),
    }
    lines = [
        service.chat_line(name, messages=prompt(tokens - around), max_tokens=most)
        for name, (tokens, most) in asked.items()
    ]
    ended = service.run(lines, seconds=300)
    fits = {"8191+1", "8189+none", "short"}
    assert failures(ended) == dict.fromkeys(asked.keys() - fits, "context_length_exceeded")
    for one in ended.err:
        tokens, most = asked[one["custom_id"]]
        message = one["response"]["body"]["error"]["message"]
        assert str(context) in message, message
        assert str(tokens + (most or 1)) in message, message
    found = bodies(ended)
    assert found.keys() == fits
    for name in fits:
        usage = found[name]["usage"]
        assert usage["prompt_tokens"] == asked[name][0]
        assert usage["total_tokens"] <= context


def test_case_61_max_tokens_that_are_none(service: Service, request: pytest.FixtureRequest) -> None:
    """max_tokens of 0, below, or above 1,024 is refused; absent it is at most 1,024, and the engine lives on."""
    before = engine_pids(request)
    wrong: list[Any] = [0, -1, 10_000_000, 1_025, 1.5, "5", []]
    refused_keys(service, [{"max_tokens": value} for value in wrong])
    line = service.chat_line("absent", stop=STOP_AT_ONCE)
    del line["body"]["max_tokens"]
    ended = service.run([line, service.chat_line("most", stop=STOP_AT_ONCE, max_tokens=1_024)])
    found = bodies(ended)
    assert found.keys() == {"absent", "most"}
    assert found["absent"]["usage"]["completion_tokens"] <= 1_024
    check_hold(service, ended, output_tokens=2_048)
    assert engine_pids(request) == before or not before, "an engine was started anew"


def test_case_65_logprobs(service: Service) -> None:
    """Token probabilities come with up to 5 alternatives, in strict JSON; more, fewer, or alternatives alone are refused."""
    wrong: list[dict[str, Any]] = [
        {"logprobs": True, "top_logprobs": 6},
        {"logprobs": True, "top_logprobs": -1},
        {"top_logprobs": 5},
        {"logprobs": False, "top_logprobs": 1},
    ]
    for error in refusals(service, [*wrong, {"logprobs": 5}]):
        assert error["param"] == ("body.logprobs" if error["line"] == 5 else "body.top_logprobs"), error
    given: dict[str, dict[str, Any]] = {
        "0": {"top_logprobs": 0},
        "5": {"top_logprobs": 5},
        "absent": {},
        "greedy": {"top_logprobs": 5, "temperature": 0, "top_p": 0.01},
    }
    lines = [service.chat_line(name, logprobs=True, **body) for name, body in given.items()]
    ended = service.run([*lines, service.chat_line("without")])
    answers = bodies(ended)
    assert answers.pop("without")["choices"][0]["logprobs"] is None
    assert strict_lines(service.content(ended.batch["output_file_id"])) == ended.out
    for name, body in answers.items():
        content = body["choices"][0]["logprobs"]["content"]
        assert len(content) == body["usage"]["completion_tokens"]
        for token in content:
            assert len(token["top_logprobs"]) == given[name].get("top_logprobs", 0), name
            assert all(math.isfinite(one["logprob"]) for one in (token, *token["top_logprobs"]))


def test_case_66_usage_counts_every_choice(service: Service) -> None:
    """completion_tokens are the tokens of all choices, prompt_tokens count once, and the hold covers n answers."""
    refused_keys(service, [{"n": 0}, {"n": 9}, {"n": -1}, {"n": "2"}, {"n": 1.5}])
    asked = ((1, 20, 1), (3, 20, 1), (8, 4, 0))  # (n, max_tokens, temperature)
    lines = [
        service.chat_line(str(n), n=n, max_tokens=most, messages=COUNT, logprobs=True, temperature=heat)
        for n, most, heat in asked
    ]
    ended = service.run(lines)
    found = bodies(ended)
    for n, most, _ in asked:
        choices, usage = found[str(n)]["choices"], found[str(n)]["usage"]
        assert [one["index"] for one in choices] == list(range(n))
        assert usage["completion_tokens"] == sum(len(one["logprobs"]["content"]) for one in choices)
        assert usage["completion_tokens"] <= most * n
        assert all(one["finish_reason"] in {"stop", "length"} for one in choices)
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert len({found[str(n)]["usage"]["prompt_tokens"] for n, *_ in asked}) == 1
    assert len(set(texts(found["8"]))) == 1, "greedy answers are alike"
    check_hold(service, ended, output_tokens=sum(n * most for n, most, _ in asked))
