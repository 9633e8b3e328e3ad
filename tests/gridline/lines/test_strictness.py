"""A file through the whole check: what bytes and values may not do, where each is reported, and what no report repeats."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from gridline.lines.checking import Checked
from gridline.lines.reading import physical_lines

from .conftest import CHAT, EMBEDDINGS, Check, chat_line, embedding_line, jsonl

SECRET = "the-customer's-own-words"
GOOD = json.dumps(chat_line("good")).encode()


def raw(body: str, custom_id: str = '"a"') -> bytes:
    """A chat line whose body ends with this text of JSON."""
    head = '"model":"tiny-chat","messages":[{"role":"user","content":"x"}]'
    return f'{{"custom_id":{custom_id},"method":"POST","url":"{CHAT}","body":{{{head}{body}}}}}'.encode()


def only(checked: Checked) -> tuple[str, str | None, int | None]:
    """Code, param and line of the one error."""
    (error,) = checked.errors
    return error.code, error.param, error.line


PASSES = {
    "-0 as a seed": raw(',"seed":-0'),
    "-0.0 as a temperature": raw(',"temperature":-0.0'),
    "1E0 as a top_p": raw(',"top_p":1E0'),
    "the largest seed": raw(f',"seed":{2**63 - 1}'),
    "the smallest seed": raw(f',"seed":{-(2**63)}'),
    "nulls": raw(',"n":null,"stop":null,"tools":null,"response_format":null'),
    "an escaped NUL": raw(',"user":"\\u0000"'),
    "a pair of surrogates": raw("", '"\\ud83d\\ude00"'),
    "512 characters of custom_id": raw("", json.dumps("😀" * 512, ensure_ascii=False)),
    "white space around": b" \t" + GOOD + b" \r",
    "depth 100 where it means nothing": raw(',"logit_bias":null') + b" ",
}


@pytest.mark.parametrize("name", PASSES)
def test_what_passes(check: Check, name: str) -> None:
    """Unusual but right JSON is taken."""
    assert check(data=PASSES[name]).errors == ()


NOT_JSON = {
    "NaN": raw(',"temperature":NaN'),
    "Infinity": raw(',"temperature":Infinity'),
    "-Infinity": raw(',"top_p":-Infinity'),
    "a key twice": raw(',"n":1,"n":1'),
    "a key twice, once escaped": raw(',"n":1,"\\u006e":1'),
    "a key twice deep inside": raw(',"response_format":{"type":"text","x":[{"a":1,"a":2}]}'),
    "custom_id twice": b'{"custom_id":"a",' + GOOD[1:],
    "a lone surrogate": raw("", '"ok \\ud83d"'),
    "a lone surrogate as a key": raw(',"\\udc00":1'),
    "an encoded surrogate": raw("", '"\ufffd"').replace("\ufffd".encode(), b"\xed\xa0\x80"),
    "10,000 digits": raw(f',"seed":{"9" * 10_000}'),
    "a leading zero": raw(',"n":01'),
    "a plus": raw(',"n":+1'),
    "half a number": raw(',"top_p":.5'),
    "a comment": raw(" /* x */"),
    "single quotes": b"{'custom_id':'a'}",
    "a trailing comma": raw(","),
    "two objects": GOOD + b" " + GOOD,
    "cut": GOOD[:-1],
    "a raw control character": raw("", '"a\tb"'),
    "a raw NUL": raw("", '"a\0b"'),
    "a NUL behind": GOOD + b"\0",
    "cp1252": raw("", '"€"').decode().encode("cp1252"),
    "UTF-16": GOOD.decode().encode("utf-16"),
    "UTF-16 without a mark": GOOD.decode().encode("utf-16-le"),
    "UTF-32": GOOD.decode().encode("utf-32"),
    "overlong UTF-8": raw("", '"?"').replace(b"?", b"\xc0\xaf"),
    "a second BOM": b"\xef\xbb\xbf" + GOOD,
    "old Macintosh lines": GOOD + b"\r" + GOOD,
    "gzip": b"\x1f\x8b\x08\x00junk",
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_is_no_json(check: Check, name: str) -> None:
    """Each is refused as a line that is not JSON, with its physical line, whatever stands around it."""
    checked = check(data=b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n   \n" + NOT_JSON[name] + b"\n\n")
    assert [error.line for error in checked.errors][:1] == [4]
    assert {error.code for error in checked.errors} == {"invalid_json_line"}
    assert (checked.total - checked.errors_total, checked.partitions) == (1, ())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("UTF-16", "UTF-16"),
        ("UTF-16 without a mark", "UTF-16"),
        ("cp1252", "not UTF-8: byte"),
        ("a second BOM", "byte order mark"),
        ("old Macintosh lines", "line feed"),
        ("a raw NUL", "Control character"),
        ("a key twice", 'Detected duplicate key "n"'),
    ],
)
def test_case_1_the_cause_is_named(check: Check, name: str, hint: str) -> None:
    """What the file's writer did wrong is said, not only that it is wrong."""
    checked = check(data=GOOD + b"\n" + NOT_JSON[name] + b"\n")
    assert hint in checked.errors[0].message


WRONG_VALUES = {
    "body.temperature": ["1e999", "-1e999", "true", '"1"', "[]", "{}", "2.0000001", "1" * 400],
    "body.n": ["1.0", "true", "-0", "0", "9", str(2**63), "1e0", '"1"', "[1]"],
    "body.max_tokens": ["1.0", "false", "-0", "1025", str(2**63), "1" * 400],
    "body.seed": ["1.0", str(2**63), str(-(2**63) - 1), "1e3", "1" * 4_000, '"1"', "true"],
    "body.logprobs": ["1", '"true"', "[]", "5"],
    "body.user": ["1", "[]", '{"a":1}', "true", "[" * 90 + "]" * 90],
    "body.stop": ["1", "{}", "[[]]", "true", '["a","b","c","d","e"]', '""', "[null]"],
    "body.response_format": ['"json"', "[]", "true", "1"],
    "body.stream": ['"true"', "1", "[]"],
    "body.stream_options": ["{}"],
    "body.tools": ["[]"],
    "body.tool_choice": ['"none"'],
}


@pytest.mark.parametrize(
    ("param", "value"), [(param, value) for param, values in WRONG_VALUES.items() for value in values]
)
def test_wrong_values_are_refused_by_name(check: Check, param: str, value: str) -> None:
    """A value of another type, or out of range, is refused at its key: 1.0 is no whole number, true no number."""
    key = param.removeprefix("body.")
    assert only(check(data=GOOD + b"\n" + raw(f',"{key}":{value}')))[1:] == (param, 2)


@pytest.mark.parametrize(
    "url",
    [
        "/v1/embeddings", "/chat/completions", "/v1/chat/completions/", "/V1/chat/completions",
        "https://api.openai.com/v1/chat/completions", "/v1/../v1/chat/completions", "/v1/chat/completions\n", "",
    ],
)  # fmt: skip
def test_case_32_urls(check: Check, url: str) -> None:
    """Only the endpoint itself will do."""
    assert only(check({**chat_line(), "url": url})) == ("invalid_url", "url", 1)


@pytest.mark.parametrize(
    ("levels", "refused"), [(100, False), (101, True), (199, True), (201, True), (20_000, True)]
)
def test_case_11_depth(check: Check, levels: int, refused: bool) -> None:
    """A hundred levels are read (and then refused for what they are), one more is refused as too deep, alike at any depth."""
    nested = "[" * (levels - 2) + "]" * (levels - 2)
    (error,) = check(data=raw(f',"user":{nested}')).errors
    assert ("nested deeper than the limit of 100 levels" in error.message) is refused
    assert error.code == "invalid_request"


def test_case_12_memory_for_a_long_line() -> None:
    """A line of 199 MB is passed over in flat memory, and the line after it is read."""
    chunks = [b"x" * (1 << 20)]
    tracemalloc.start()
    try:
        lines = list(physical_lines(iter([*chunks * 199, b"\n{}\n"])))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [(line.number, line.size) for line in lines] == [(1, 199 << 20), (2, 2)]
    assert peak < 24 << 20


@pytest.mark.parametrize("piece", ["[],", "{},", '[{"a":1}],'])
def test_many_brackets(check: Check, piece: str) -> None:
    """Eight megabytes of small objects, a hundred times as large in memory, are refused before they are read."""
    line = raw(f',"user":[{piece * 300_000}0]')
    (error,) = check(data=line).errors
    assert "250000 opening brackets" in error.message


@pytest.mark.thorough
def test_two_hundred_thousand_keys(check: Check) -> None:
    """An object of very many keys is refused by the first, in little time."""
    keys = ",".join(f'"key{number}":1' for number in range(200_000))
    assert only(check(data=raw(f",{keys}"))) == ("invalid_request", "body.key0", 1)


HUGE_NAMES: dict[str, Callable[[int], object]] = {
    "duplicate custom_ids": lambda _: chat_line("😀" * 512),
    "unknown keys": lambda n: chat_line(f"{n}", **{"😀" * 5_000 + str(n): 1}),
    "unknown keys around": lambda n: {**chat_line(f"{n}"), "\x00😀" * 5_000: 1},
    "models": lambda n: chat_line(f"{n}", model="😀" * 5_000),
    "adapters": lambda n: chat_line(f"{n}", model="ft:" + "😀" * 5_000 + str(n)),
    "keys twice": lambda _: raw(f',"{"😀" * 5_000}":1,"{"😀" * 5_000}":1'),
    "roles": lambda n: chat_line(f"{n}", messages=[{"role": '"' * 9_000, "content": "x"}]),
    "methods": lambda n: {**chat_line(f"{n}"), "method": "\\" * 9_000},
    "urls": lambda n: {**chat_line(f"{n}"), "url": "\x7f😀" * 5_000},
    "schemas": lambda n: chat_line(
        f"{n}",
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": {"type": "😀" * 5_000}},
        },
    ),
    "keys of parts": lambda n: chat_line(
        f"{n}", messages=[{"role": "user", "content": [{"type": "😀" * 5_000}]}]
    ),
}


@pytest.mark.parametrize("name", HUGE_NAMES)
def test_case_5_reports_are_small(check: Check, name: str) -> None:
    """Whatever a file is full of, its hundred errors stay under 90 kB as JSON, and every one keeps its line."""
    checked = check(*[HUGE_NAMES[name](number) for number in range(130)])
    assert checked.errors_total >= 129
    assert len(checked.errors) == 100
    assert all(isinstance(error.line, int) and error.message for error in checked.errors)
    assert len(json.dumps([error.as_dict() for error in checked.errors])) < 100 * 902


@pytest.mark.parametrize("place", ["key", "model", "role", "twice"])
def test_reports_hold_printable_characters(check: Check, place: str) -> None:
    """NUL, escapes of terminals and their like become escapes: databases refuse the one, terminals obey the other."""
    odd = "\0\x1b[31m\u2028x"
    lines = {
        "key": chat_line(**{odd: 1}),
        "model": chat_line(model=odd),
        "role": chat_line(messages=[{"role": odd, "content": "x"}]),
        "twice": raw(f",{json.dumps(odd)}:1,{json.dumps(odd)}:1"),
    }
    (error,) = check(lines[place]).errors
    assert f"{error.message}{error.param}".isprintable()
    assert "31m" in error.message


SAYS_SECRET: dict[str, dict[str, Any]] = {
    "content parts": {"messages": [{"role": "user", "content": [{"type": "image_url", "text": SECRET}]}]},
    "content of another type": {"messages": [{"role": "user", "content": {"text": SECRET}}]},
    "messages that are a text": {"messages": SECRET},
    "a message that is a text": {"messages": [SECRET]},
    "a name of another type": {"messages": [{"role": "user", "content": "x", "name": [SECRET]}]},
    "a key beside it": {"messages": [{"role": "user", "content": SECRET, "tool_calls": [SECRET]}]},
    "stop": {"stop": [SECRET, 5]},
    "user": {"user": [SECRET]},
    "tools": {"tools": [{"function": {"description": SECRET}}]},
    "a schema's texts": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "x", "description": SECRET, "schema": {"description": SECRET, "not": {}}},
        }
    },
}


@pytest.mark.parametrize("name", SAYS_SECRET)
def test_no_report_repeats_content(check: Check, caplog: pytest.LogCaptureFixture, name: str) -> None:
    """Errors name parameters and never repeat what stands in messages, inputs and their like; nor do logs."""
    caplog.set_level("DEBUG")
    checked = check(chat_line(**SAYS_SECRET[name]))
    assert checked.errors_total == 1
    assert SECRET not in json.dumps([error.as_dict() for error in checked.errors])
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "line",
    [
        GOOD.replace(b"Say ok", SECRET.encode() + b"\x01"),
        GOOD.replace(b"Say ok", SECRET.encode() + b"\\ud83d"),
        GOOD.replace(b"Say ok", SECRET.encode() + b"\xff"),
        GOOD.replace(b'"Say ok"', SECRET.encode()),
        GOOD.replace(b"Say ok", SECRET.encode())[:-9],
        GOOD.replace(b"Say ok", SECRET.encode()).decode().encode("utf-16"),
    ],
)
def test_no_report_repeats_what_is_no_json(check: Check, line: bytes) -> None:
    """A line that cannot be read is told by its columns, not by its text."""
    checked = check(data=line)
    assert checked.errors_total
    assert SECRET not in json.dumps([error.as_dict() for error in checked.errors])


@pytest.mark.parametrize("value", [[SECRET, 5], [[SECRET]], {"text": SECRET}, [SECRET, ""]])
def test_no_report_repeats_inputs(check: Check, value: object) -> None:
    """Inputs are not repeated either."""
    checked = check(embedding_line(input=value), endpoint=EMBEDDINGS)
    assert checked.errors[0].param == "body.input"
    assert SECRET not in checked.errors[0].message


MODELS = {
    "gpt-4o-mini": "The provided model 'gpt-4o-mini' is not supported by the Batch API.",
    "tiny-chat ": "The provided model 'tiny-chat ' is not supported by the Batch API.",
    "": "The provided model '' is not supported by the Batch API.",
    "ft:tiny-chat:acme:one": (
        "The provided model 'ft:tiny-chat:acme:one' is not supported by the Batch API: your account has no active "
        "fine-tuned model of this id. It does not exist, was deactivated, or belongs to another account."
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_case_44_models(check: Check, name: str) -> None:
    """A model that is not there is named in OpenAI's words, a fine-tuned one with what may be the cause."""
    checked = check(chat_line("a"), chat_line("b", model=name))
    assert only(checked) == ("model_not_found", "body.model", 2)
    assert checked.errors[0].message == MODELS[name]


def test_more_fine_tuned_models_than_a_batch_may_name(check: Check) -> None:
    """The ninth different one is told the limit, however often the eight come back."""
    names = [*(f"ft:{number}" for number in range(9)), "ft:0", "ft:8"]
    checked = check(*[chat_line(f"{number}", model=name) for number, name in enumerate(names)])
    assert {error.code for error in checked.errors} == {"model_not_found"}
    limited = [error.line for error in checked.errors if "the 8 fine-tuned models" in error.message]
    assert limited == [9, 11]


def test_line_numbers_are_physical(check: Check) -> None:
    """Blank lines, carriage returns and a BOM never shift the number that an editor shows."""
    data = b"\xef\xbb\xbf\r\n" + GOOD + b"\r\n\n \t\r\n" + jsonl({"custom_id": "x"}) + b"\n\nnope"
    assert [error.line for error in check(data=data).errors] == [5, 8]
