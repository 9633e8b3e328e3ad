"""Rows 70 to 76: embeddings, their formats, sizes, inputs and price."""

import base64
import itertools
import math
import struct
from typing import Any

from tests.conformance.batch_service import CHAT_ENDPOINT, EMBEDDINGS_ENDPOINT, Ended, Service
from tests.conformance.watching import bodies, by_line, failures, prices


def run(service: Service, lines: list[dict[str, Any]], seconds: float = 120) -> Ended:
    """Run an embeddings batch."""
    return service.run(lines, EMBEDDINGS_ENDPOINT, seconds)


def vectors(body: dict[str, Any]) -> list[list[float]]:
    """An answer's vectors, which must stand in the order of its inputs."""
    assert body["object"] == "list"
    assert [one["index"] for one in body["data"]] == list(range(len(body["data"])))
    assert {one["object"] for one in body["data"]} == {"embedding"}
    return [one["embedding"] for one in body["data"]]


def likeness(one: list[float], other: list[float]) -> float:
    """The cosine of two unit vectors."""
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def refused(service: Service, bodies_: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The errors of embedding lines with these bodies, one a line, in order; the good line behind them is not named."""
    lines = [service.embedding_line(f"bad-{n}", "text", **body) for n, body in enumerate(bodies_)]
    errors = by_line(
        service.expect_fail([*lines, service.embedding_line("good", "text")], EMBEDDINGS_ENDPOINT)
    )
    assert sorted(errors) == list(range(1, len(lines) + 1)), errors
    return [errors[number] for number in sorted(errors)]


def test_case_70_encoding_formats(service: Service) -> None:
    """Floats are numbers, base64 is the same vector as little-endian float32, and no other format is taken."""
    wrong: list[Any] = ["int8", "binary", "ubinary", "", 5, ["float"], "FLOAT"]
    for error in refused(service, [{"encoding_format": form} for form in wrong]):
        assert error["param"] == "body.encoding_format"
    forms: dict[str, dict[str, Any]] = {
        "absent": {}, "float": {"encoding_format": "float"}, "null": {"encoding_format": None},
        "base64": {"encoding_format": "base64"},
    }  # fmt: skip
    inputs = ["A cat sat on the mat.", "Interest rates rose."]
    ended = run(service, [service.embedding_line(name, inputs, **body) for name, body in forms.items()])
    found = {name: vectors(body) for name, body in bodies(ended).items()}
    floats = found["float"]
    assert {len(one) for one in floats} == {service.dimensions}
    assert all(type(number) is float for one in floats for number in one)
    decoded: list[list[float]] = []
    for text in found["base64"]:
        assert isinstance(text, str)
        data = base64.b64decode(text, validate=True)
        assert len(data) == 4 * service.dimensions
        decoded.append(list(struct.unpack(f"<{service.dimensions}f", data)))
    for others in (found["absent"], found["null"], decoded):
        for one, other in zip(floats, others, strict=True):
            assert max(abs(a - b) for a, b in zip(one, other, strict=True)) < 1e-6


def test_case_71_token_ids(service: Service) -> None:
    """Arrays of integers are this model's token ids; mixed, fractional, negative and unknown ones are refused."""
    wrong: list[Any] = [["a", [1]], [[1], "a"], [1.5], [-1], [[1, -1]], [True], [[1], []], [[[1]]], [1, "a"]]
    for error in refused(service, [{"input": one} for one in wrong]):
        assert error["param"] == "body.input"
    given: dict[str, Any] = {
        "one": [2_054, 2_003], "two": [[2_054], [2_003, 1_996]], "unknown": [999_999_999], "text": "a",
        "mixed unknown": [[1], [999_999_999]],
    }  # fmt: skip
    ended = run(service, [service.embedding_line(name, one) for name, one in given.items()])
    assert failures(ended) == dict.fromkeys(("unknown", "mixed unknown"), "invalid_request")
    assert all("999999999" in one["response"]["body"]["error"]["message"] for one in ended.err)
    found = bodies(ended)
    assert {name: len(vectors(body)) for name, body in found.items()} == {"one": 1, "two": 2, "text": 1}
    assert [found[name]["usage"]["prompt_tokens"] for name in ("one", "two")] == [2, 3]


def test_case_72_dimensions_and_models(service: Service) -> None:
    """Only the model's own dimensions are taken; a model at the other's endpoint is refused by line."""
    wrong: list[Any] = [service.dimensions + 1, service.dimensions // 2, 0, -1, "256", 1.5, True]
    *errors, mismatch = refused(service, [*({"dimensions": one} for one in wrong), {"model": service.chat}])
    assert {error["param"] for error in errors} == {"body.dimensions"}
    assert (mismatch["code"], mismatch["param"]) == ("model_not_found", "body.model")
    embedding_on_chat = service.chat_line("a", model=service.embedding)
    (mismatch,) = service.expect_fail([embedding_on_chat], CHAT_ENDPOINT)
    assert (mismatch["code"], mismatch["param"], mismatch["line"]) == ("model_not_found", "body.model", 1)
    sizes = {"own": service.dimensions, "null": None}
    lines = [service.embedding_line(name, "text", dimensions=size) for name, size in sizes.items()]
    ended = run(service, [*lines, service.embedding_line("absent", "text")])
    found = [vectors(body)[0] for body in bodies(ended).values()]
    assert [len(one) for one in found] == [service.dimensions] * 3
    assert all(likeness(one, other) > 0.999 for one, other in itertools.combinations(found, 2))


def test_case_73_inputs_of_a_line(service: Service) -> None:
    """Empty inputs and more than 2,048 are refused by line; as many as that come back in order, each its own."""
    empty: list[Any] = [[], "", [""], ["a", ""], None, [[]], ["a"] * 2_049, {}, 5, [None]]
    for error in refused(service, [{"input": one} for one in empty]):
        assert error["param"] == "body.input", error
    most = [f"number {n % 8}" for n in range(2_048)]
    lines = [service.embedding_line("most", most), service.embedding_line("space", " ")]
    ended = run(service, [*lines, service.embedding_line("first eight", most[:8])], 300)
    found = {name: vectors(body) for name, body in bodies(ended).items()}
    assert {name: len(one) for name, one in found.items()} == {"most": 2_048, "space": 1, "first eight": 8}
    for index in (0, 1, 7, 8, 1_023, 2_047):
        assert likeness(found["most"][index], found["first eight"][index % 8]) > 0.999
        assert likeness(found["most"][index], found["first eight"][(index + 1) % 8]) < 0.999


def test_case_73_inputs_of_a_batch(service: Service) -> None:
    """All lines together may have 50,000 inputs; the line that passes the limit is named, with the limit."""
    lines = [service.embedding_line(str(n), ["a"] * 2_000) for n in range(25)]
    (error,) = service.expect_fail([*lines, service.embedding_line("over", "a")], EMBEDDINGS_ENDPOINT)
    assert (error["line"], error["param"]) == (26, "body.input")
    assert "50000" in error["message"].replace(",", "")


def test_case_74_inputs_at_the_context(service: Service) -> None:
    """An input may fill the context exactly; one token more is an error line with the numbers, never a cut text."""
    context = service.embedding_context
    probe = run(service, [service.embedding_line("p", "hello " * 10)])
    around = bodies(probe)["p"]["usage"]["prompt_tokens"] - 10
    fits, over = ("hello " * (context + more - around) for more in (0, 1))
    short = [f"text {n}" for n in range(10)]
    given = {"fits": fits, "over": over, "one of eleven": [*short[:5], over, *short[5:]], "short": short}
    ended = run(service, [service.embedding_line(name, one) for name, one in given.items()])
    assert failures(ended) == dict.fromkeys(("over", "one of eleven"), "context_length_exceeded")
    for one in ended.err:
        message = one["response"]["body"]["error"]["message"]
        assert str(context) in message
        assert str(context + 1) in message
    found = bodies(ended)
    assert found["fits"]["usage"]["prompt_tokens"] == context
    assert len(vectors(found["short"])) == 10


def test_case_75_nothing_follows_from_a_long_input(service: Service) -> None:
    """After long inputs short ones get the vectors that they had before, all of length 1."""
    probe = "The quick brown fox."
    long = "sentence after sentence " * (service.embedding_context // 5)
    lines = []
    for turn in range(5):
        lines.append(service.embedding_line(f"probe-{turn}-before", probe))
        lines.append(service.embedding_line(f"long-{turn}", long))
        lines += [service.embedding_line(f"probe-{turn}-{n}", probe) for n in range(20)]
    found = {name: vectors(body)[0] for name, body in bodies(run(service, lines)).items()}
    assert len(found) == len(lines)
    assert all(abs(math.hypot(*one) - 1) < 1e-3 for one in found.values())
    first = found["probe-0-before"]
    probes = [one for name, one in found.items() if name.startswith("probe")]
    assert all(likeness(first, one) > 0.999 for one in probes)
    assert likeness(first, found["long-0"]) < 0.999


def test_case_76_tokens_and_price(service: Service) -> None:
    """Every input's tokens are counted, special ones included, and input tokens alone make the price."""
    lines = [service.embedding_line(str(n), "hello " * (1 + n % 20)) for n in range(100)]
    ended = run(service, lines)
    usage = {name: body["usage"] for name, body in bodies(ended).items()}
    around = usage["0"]["prompt_tokens"] - 1
    assert around > 0, "special tokens count"
    for n in range(100):
        tokens = 1 + n % 20 + around
        assert (usage[str(n)]["prompt_tokens"], usage[str(n)]["total_tokens"]) == (tokens, tokens)
        assert not usage[str(n)].get("completion_tokens")
    batch = ended.batch
    total = sum(one["prompt_tokens"] for one in usage.values())
    assert (batch["usage"]["input_tokens"], batch["usage"]["output_tokens"]) == (total, 0)
    rates = prices(service, service.embedding)
    facts = service.facts(batch)
    if rates is not None and facts:
        assert round(float(facts["cost"]) * 10**9) == total * rates[0]
