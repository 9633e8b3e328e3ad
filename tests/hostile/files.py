"""Hostile batch files, each from a seed: good files whose bytes, JSON, values or schemas somebody spoiled."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.hostile.schemas import BOMBS, any_format, formed, random_schema

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
CHAT_MODEL = "smollm2-135m-instruct"
EMBEDDING_MODEL = "all-minilm-l6-v2"
CANARY = "Zq7canary"
"""Stands in every message and input, and may stand in no error."""

ODD_TEXTS = (
    "", " ", "\0", "\x7f", "\x1b[31m", "\r\n", "\u2028", "\u202e", "\ufeff", "\ufffd", "\ufffe", "e\u0301", "ß", "İ", "😀", "👨‍👩‍👧",
    "\U0010ffff", "\ue000", "'", '"', "\\", "{{ 7*7 }}", "{% raw %}", "${x}", "%s%n", "=cmd|calc", "<script>", "None", "null", "NaN",
    "../../etc/passwd", "x" * 513, "é" * 512, "<|im_end|>", "<|endoftext|>", "__proto__", "constructor", "a" * 20_000,
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -0.0, 1, -1, 1.0, 0.5, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**300, 1e-320, "", "1", [], {}, [[]],
    [None], {"": None}, [0] * 50, {"a": {"a": {"a": 1}}}, *ODD_TEXTS[:12],
)  # fmt: skip
RAW_NUMBERS = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "-0", "00", "01", "+1", ".5", "5.", "1e", "0x10", "1_000", "9" * 400,
    "9" * 5_000, "1" + "0" * 308 + ".0", "0." + "0" * 400 + "1", "18446744073709551616", "9223372036854775808", "1E400", "-",
)  # fmt: skip
CHAT_KEYS = (
    "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop", "presence_penalty",
    "frequency_penalty", "seed", "logprobs", "top_logprobs", "response_format", "user", "stream", "store", "tools", "guided_json",
    "chat_template", "chat_template_kwargs", "logit_bias", "priority", "stream_options", "",
)  # fmt: skip
EMBEDDING_KEYS = (
    "model",
    "input",
    "encoding_format",
    "dimensions",
    "user",
    "truncate_prompt_tokens",
    "priority",
)
Lines = list[dict[str, Any]]


@dataclass(frozen=True)
class HostileFile:
    """One file, and what its batch is created for."""

    seed: int
    kind: str
    endpoint: str
    data: bytes

    def __str__(self) -> str:
        return f"file of seed {self.seed}, kind '{self.kind}', {len(self.data)} bytes"


def hostile_file(seed: int) -> HostileFile:
    """The file of this seed; its kind is the seed's place among the kinds, so that a run has as many of each."""
    chance = Random(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    endpoint = EMBEDDINGS if kind == "inputs" or (kind not in CHAT_ONLY and chance.random() < 0.3) else CHAT
    lines = [good_line(chance, number, endpoint) for number in range(chance.randint(1, 8))]
    return HostileFile(seed, kind, endpoint, KINDS[kind](chance, lines))


def good_line(chance: Random, number: int, endpoint: str) -> dict[str, Any]:
    """A line that keeps every rule."""
    words = " ".join(chance.choices(("say", "w1", "w2", "ok", "naïve", "日本"), k=chance.randint(1, 20)))
    text = f"{CANARY} {words}"
    body: dict[str, Any] = {"model": EMBEDDING_MODEL, "input": chance.choice((text, [text, "w1"], [5, 6, 7]))}
    if endpoint == CHAT:
        messages = [{"role": "user", "content": text}]
        body = {"model": CHAT_MODEL, "messages": messages, "max_tokens": chance.randint(1, 64)}
        body |= chance.choice(({}, {"temperature": 0.5}, {"n": 2}, {"stop": ["x"]}, {"seed": 7}))
    return {"custom_id": f"line-{number}", "method": "POST", "url": endpoint, "body": body}


def jsonl(lines: list[Any]) -> bytes:
    """The lines as a file."""
    return b"".join(
        json.dumps(one, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n" for one in lines
    )


def one_of(chance: Random, lines: Lines) -> dict[str, Any]:
    """The body of some line."""
    body: dict[str, Any] = chance.choice(lines)["body"]
    return body


def flipped(chance: Random, lines: Lines) -> bytes:
    """Some bytes are others."""
    data = bytearray(jsonl(lines))
    for _ in range(chance.randint(1, 6)):
        data[chance.randrange(len(data))] = chance.choice(
            (0, 9, 10, 13, 34, 44, 92, 123, 125, 0x80, 0xC0, 0xED, 0xFF)
        )
    return bytes(data)


def cut(chance: Random, lines: Lines) -> bytes:
    """The file ends somewhere, or begins somewhere."""
    data = jsonl(lines)
    place = chance.randrange(len(data))
    return data[place:] if chance.random() < 0.3 else data[:place]


def spliced(chance: Random, lines: Lines) -> bytes:
    """Pieces of the file stand elsewhere, or twice."""
    data = jsonl(lines)
    a, b, c = sorted(chance.randrange(len(data) + 1) for _ in range(3))
    return chance.choice(
        (data[:a] + data[b:c] + data[a:b] + data[c:], data[:b] + data[a:], data[:a] + data[c:])
    )


def nested(chance: Random, lines: Lines) -> bytes:
    """Something is nested, a little or far too deep."""
    levels = chance.choice((3, 60, 93, 94, 97, 98, 99, 150, 250, 20_000))
    opened, closed = chance.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"b":', b"}]")))
    one_of(chance, lines)[chance.choice(("user", "metadata", "stop", "messages", "input"))] = "HERE"
    return jsonl(lines).replace(b'"HERE"', opened * levels + b"1" + closed * levels)


def repeated_keys(chance: Random, lines: Lines) -> bytes:
    """A key stands twice in an object, at any depth, once written with an escape."""
    data = jsonl(lines)
    key = chance.choice((b'"custom_id"', b'"body"', b'"model"', b'"role"', b'"content"', b'"input"'))
    again = chance.choice(
        (key, key.replace(b'"', b'"\\u0061"', 1)[:-1], b'"\\u00' + key[1:2].hex().encode() + key[2:])
    )
    return data.replace(
        key, again + b":" + chance.choice((b"1", b"null", b'"x"')) + b"," + key, chance.randint(1, 3)
    )


def numbers(chance: Random, lines: Lines) -> bytes:
    """A number that is none, or is too much for most."""
    key = chance.choice(
        ("temperature", "top_p", "n", "seed", "max_tokens", "dimensions", "input", "custom_id")
    )
    if key == "custom_id":
        lines[0][key] = "HERE"
    else:
        one_of(chance, lines)[key] = "HERE"
    return jsonl(lines).replace(b'"HERE"', chance.choice(RAW_NUMBERS).encode())


def wrong_types(chance: Random, lines: Lines) -> bytes:
    """Any key of a body has any value."""
    keys = CHAT_KEYS if lines[0]["url"] == CHAT else EMBEDDING_KEYS
    for _ in range(chance.randint(1, 4)):
        one_of(chance, lines)[chance.choice(keys)] = chance.choice(ODD_VALUES)
    return jsonl(lines)


def wrong_envelopes(chance: Random, lines: Lines) -> bytes:
    """Any key around a body is missing or has any value, or the line is no object."""
    line: Any = chance.choice(lines)
    key = chance.choice((*line, "priority", "\0", "x" * 9_000))
    if chance.random() < 0.2 and key in line:
        del line[key]
    else:
        line[key] = chance.choice(ODD_VALUES)
    return jsonl([*lines, chance.choice(ODD_VALUES)] if chance.random() < 0.3 else lines)


def odd_texts(chance: Random, lines: Lines) -> bytes:
    """Unusual characters in texts, keys and ids."""
    body = one_of(chance, lines)
    text = "".join(chance.choices(ODD_TEXTS, k=3))
    place = chance.choice(("content", "id", "key", "user", "model", "name", "escaped"))
    if place == "content" and "messages" in body:
        body["messages"][0]["content"] = text
    elif place == "name" and "messages" in body:
        body["messages"][0]["name"] = text
    elif place == "id":
        lines[-1]["custom_id"] = text
    elif place == "key":
        body[text] = 1
    elif place == "escaped":
        body["user"] = "HERE"
        escape = chance.choice(
            (r"\ud800", r"\udc00\ud800", r"\u0000", r"\uffff", r"\ud83d\ude00", r"\u12", r"\x41", "\t")
        )
        return jsonl(lines).replace(b"HERE", escape.encode())
    else:
        body["model" if place == "model" else "user"] = text
    return jsonl(lines)


def line_ends(chance: Random, lines: Lines) -> bytes:
    """Every kind of line end, blank lines, marks and a tail."""
    ends = (
        b"\n",
        b"\r\n",
        b"\r",
        b"\n\n",
        b"\n \t\n",
        b"\x0b\n",
        "\u2028".encode(),
        b"\n\xef\xbb\xbf",
        b"\0\n",
        b"",
    )
    data = chance.choice((b"", b"\xef\xbb\xbf", b"\n", b"\r\n"))
    for line in lines:
        data += json.dumps(line).encode() + chance.choice(ends[: chance.choice((2, len(ends)))])
    return data


def encodings(chance: Random, lines: Lines) -> bytes:
    """The whole file, or a line of it, in another encoding."""
    other = chance.choice(("utf-16", "utf-16-le", "utf-32", "cp1252", "utf-7", "shift_jis", "cp037"))
    good = jsonl(lines)
    odd = good.decode().replace("日本", "€" if other == "cp1252" else "").encode(other, "replace")
    return odd if chance.random() < 0.3 else good + odd + good


def custom_ids(chance: Random, lines: Lines) -> bytes:
    """Ids that are twice, nearly the same, too long, or no texts."""
    ids: tuple[Any, ...] = (
        "line-0",
        "LINE-0",
        "line-0 ",
        "é",
        "e\u0301",
        "",
        " ",
        "x" * 512,
        "x" * 513,
        "😀" * 512,
        1,
        None,
        True,
        [],
        "\0",
        "a\nb",
    )
    for line in lines:
        line["custom_id"] = chance.choice(ids)
    return jsonl(lines)


def models(chance: Random, lines: Lines) -> bytes:
    """Models that are not there, are the other endpoint's, or mixed."""
    names = (
        CHAT_MODEL, EMBEDDING_MODEL, "gpt-4o-mini", f"{CHAT_MODEL} ", CHAT_MODEL.upper(), "", None, 5, [CHAT_MODEL], "x" * 9_000, "\0",
        *(f"ft:{CHAT_MODEL}:acme:{number}" for number in range(12)),
    )  # fmt: skip
    extra = [good_line(chance, 100 + number, lines[0]["url"]) for number in range(chance.choice((0, 30)))]
    for line in [*lines, *extra]:
        line["body"]["model"] = chance.choice(names)
    return jsonl([*lines, *extra])


def messages(chance: Random, lines: Lines) -> bytes:
    """Conversations of odd shapes."""
    part = {"type": "text", "text": CANARY}
    shapes: tuple[Any, ...] = (
        [], [{}], [None], ["x"], {"role": "user"}, "x", [{"role": "user"}], [{"role": "tool", "content": CANARY}],
        [{"role": "user", "content": []}], [{"role": "user", "content": [part] * 400}], [{"role": "user", "content": [part, 5]}],
        [{"role": "user", "content": [{**part, "x": 1}]}], [{"role": "user", "content": None}], [{"role": ["user"], "content": CANARY}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/x"}}]}],
        [{"role": "assistant", "content": CANARY, "tool_calls": []}], [{"role": "user", "content": CANARY, "name": 5}],
        [{"role": role, "content": CANARY} for role in ("system", "user", "assistant") * 300], [{"role": "user", "content": "x" * 40_000}],
        [{"role": "assistant", "content": ""}], [{"role": "system", "content": CANARY}] * 3, [[{"role": "user", "content": CANARY}]],
    )  # fmt: skip
    one_of(chance, lines)["messages"] = chance.choice(shapes)
    return jsonl(lines)


def inputs(chance: Random, lines: Lines) -> bytes:
    """Things to embed of odd shapes and sizes."""
    shapes: tuple[Any, ...] = (
        "", [], [""], ["a", ""], ["a", [1]], [[1], "a"], [1.5], [-1], [True], [10**9], [2**70], [[]], [[[1]]], [None], {}, 5, "w1 " * 5_000,
        ["w1"] * 2_048, ["w1"] * 2_049, [[1, 2]] * 2_048, [0] * 9_000, [[0] * 300] * 20, [CANARY, 5], ["\0"], ["x" * 100_000], " ",
    )  # fmt: skip
    one_of(chance, lines)["input"] = chance.choice(shapes)
    return jsonl(lines)


def big(chance: Random, lines: Lines) -> bytes:
    """Much of something: text, keys, brackets, blank lines, bytes without a line end."""
    count = chance.choice((2_000, 60_000, 700_000))
    body = one_of(chance, lines)
    what = chance.choice(("text", "keys", "brackets", "blanks", "name", "no end", "stop"))
    if what == "blanks":
        return jsonl(lines) + b"\n" * count + jsonl(lines) + b" " * count
    if what == "no end":
        return chance.choice((b"x", b"\0", b"[", b'{"a":', b'"')) * (count * chance.choice((1, 14)))
    if what == "brackets":
        body["user"] = "HERE"
        return jsonl(lines).replace(b'"HERE"', b"[" + b"{}," * count + b"0]")
    if what == "keys":
        body.update({f"key{number}": number for number in range(count // 20)})
    elif what == "stop":
        body["stop"] = ["x" * count, "y"]
    elif "messages" in body:
        body["messages"][0]["name" if what == "name" else "content"] = "x" * count
    return jsonl(lines)


def many(chance: Random, lines: Lines) -> bytes:
    """Thousands of small lines, good or bad."""
    line = lines[0]
    if chance.random() < 0.4:
        line["body"].pop("model")
    copies = [
        {**line, "custom_id": f"{'😀' * chance.choice((0, 200))}{number}"}
        for number in range(chance.choice((1_001, 2_500)))
    ]
    return jsonl(copies) * chance.choice((1, 1, 2))


def nothing(chance: Random, _: Lines) -> bytes:
    """Nothing at all, or nothing of use."""
    junk = (
        b"",
        b"\n",
        b"\xef\xbb\xbf",
        b"\r\n\r\n",
        b" ",
        b"\0" * 500,
        b"null",
        b"[]",
        b"{}",
        b'""',
        b"\xff\xfe",
        b"PK\x03\x04",
    )
    return chance.choice(
        (*junk, chance.randbytes(chance.randint(1, 5_000)), b"{}\n" * chance.randint(1, 300))
    )


def formats(chance: Random, lines: Lines) -> bytes:
    """Everything that response_format may and may not be."""
    one_of(chance, lines)["response_format"] = any_format(chance)
    return jsonl(lines)


def schemas(chance: Random, lines: Lines) -> bytes:
    """Schemas made at random of every keyword and any value, a different one in each line."""
    for line in lines:
        line["body"]["response_format"] = formed(random_schema(chance, 4))
    return jsonl(lines)


def bombs(chance: Random, lines: Lines) -> bytes:
    """Schemas made to hang, swell or kill whoever looks at them."""
    one_of(chance, lines)["response_format"] = formed(chance.choice(BOMBS))
    return jsonl(lines)


KINDS: dict[str, Callable[[Random, Lines], bytes]] = {
    "flipped": flipped, "cut": cut, "spliced": spliced, "nested": nested, "repeated keys": repeated_keys, "numbers": numbers,
    "wrong types": wrong_types, "wrong envelopes": wrong_envelopes, "odd texts": odd_texts, "line ends": line_ends,
    "encodings": encodings, "custom ids": custom_ids, "models": models, "messages": messages, "inputs": inputs, "big": big, "many": many,
    "nothing": nothing, "formats": formats, "schemas": schemas, "bombs": bombs,
}  # fmt: skip
"""What is done to a good file, by name."""
CHAT_ONLY = frozenset({"messages", "formats", "schemas", "bombs"})
