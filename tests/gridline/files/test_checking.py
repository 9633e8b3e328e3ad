"""What is told about an input while its bytes stream past."""

import json

import pytest

from gridline import limits
from gridline.files.checking import InputCheck, check_filename
from gridline.files.errors import FileRefused, FileTooLarge

LINE = b'{"custom_id":"a"}'


def check(data: bytes, *, step: int = 1 << 16, bytes_max: int = 10**9, lines_max: int = 50_000) -> None:
    """Feed the bytes in steps of one size."""
    one = InputCheck(bytes_max=bytes_max, lines_max=lines_max)
    for start in range(0, len(data), step):
        one.feed(data[start : start + step])
    one.finish()


GOOD = {
    "no final newline": LINE + b"\n" + LINE,
    "final newline": LINE + b"\n",
    "blank lines": b"\n \n" + LINE + b"\n   \n\t\n" + LINE + b"\n\n",
    "crlf": LINE + b"\r\n" + LINE + b"\r\n",
    "bom": b"\xef\xbb\xbf" + LINE + b"\n",
    "only blank lines": b"\n\n",
    "bad later line": LINE + b"\nnot json\n",
    "not an object": b"[1,2]\n",
    "wide characters": json.dumps({"a": "é日😀"}, ensure_ascii=False).encode() + b"\n",
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("step", [1, 2, 7, 1 << 16])
def test_what_a_batch_file_may_look_like(name: str, step: int) -> None:
    """BOM, CRLF, blank lines and a bad later line pass at upload, however the bytes are cut."""
    check(GOOD[name], step=step)


BAD = {
    "empty": (b"", "empty_file", "empty"),
    "first line not JSON": (b"custom_id,body\n" + LINE, "invalid_json_line", "not JSON"),
    "only line not JSON": (b"hello", "invalid_json_line", "not JSON"),
    "first line cut": (b'{"a":', "invalid_json_line", "not JSON"),
    "NaN": (b'{"a":NaN}\n', "invalid_json_line", "not JSON"),
    "lone surrogate": (b'{"a":"\\ud83d"}\n', "invalid_json_line", "not JSON"),
    "deep": (b"[" * 20_000 + b"]" * 20_000, "invalid_json_line", "not JSON"),
    "utf-16": ((LINE.decode() + "\n").encode("utf-16"), "invalid_encoding", "UTF-16"),
    "utf-16 without a mark": ((LINE.decode() + "\n").encode("utf-16-le"), "invalid_encoding", "UTF-16"),
    "cp1252": (b'{"a":"\x80"}\n', "invalid_encoding", "UTF-8"),
    "cut character": (LINE + b'\n{"a":"\xc3', "invalid_encoding", "UTF-8"),
    "late bad byte": (LINE + b"\n" + b" " * 200_000 + b"\xff", "invalid_encoding", "UTF-8"),
    "gzip": (b"\x1f\x8b\x08\x00rest", "invalid_file_format", "gzip"),
    "zip": (b"PK\x03\x04rest", "invalid_file_format", "zip"),
    "zstd": (b"\x28\xb5\x2f\xfdrest", "invalid_file_format", "zstd"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("step", [1, 7, 1 << 16])
def test_what_is_refused_at_upload(name: str, step: int) -> None:
    """Empty, compressed, not UTF-8, or a first line that is not JSON: refused with a sentence that names it."""
    data, code, word = BAD[name]
    with pytest.raises(FileRefused, match=word) as caught:
        check(data, step=step)
    assert (caught.value.code, caught.value.param) == (code, "file")


@pytest.mark.parametrize("step", [1, 5, 1 << 16])
def test_caps_are_inclusive(step: int) -> None:
    """Exactly at the caps passes; one byte or one request more is refused with the cap."""
    data = (LINE + b"\n\n") * 10
    check(data, step=step, bytes_max=len(data), lines_max=10)
    with pytest.raises(FileTooLarge) as caught:
        check(data + b"\n", step=step, bytes_max=len(data))
    assert caught.value.limit == {"name": "file_bytes", "limit": len(data), "unit": "bytes"}
    with pytest.raises(FileTooLarge) as caught:
        check(data + LINE, step=step, lines_max=10)
    assert caught.value.limit == {"name": "file_requests", "limit": 10, "unit": "requests"}


def test_blank_lines_cost_nothing() -> None:
    """Millions of blank lines are no requests, and are passed over in steps larger than a byte."""
    check(LINE + b"\n" * 3_000_000 + LINE, lines_max=2)


def test_an_endless_first_line_ends() -> None:
    """A first line over the cap is refused without waiting for its end."""
    mebibyte = 1 << 20
    one = InputCheck(bytes_max=10**9, lines_max=10)
    one.feed(b'["')
    for _ in range(limits.LINE_BYTES_MAX // mebibyte - 1):
        one.feed(b"x" * mebibyte)
    with pytest.raises(FileRefused) as caught:
        one.feed(b"x" * mebibyte)
    assert caught.value.code == "line_too_large"


@pytest.mark.parametrize(
    "name",
    [
        "r.jsonl",
        ".jsonl",
        "R.JSONL",
        "../../../../tmp/x.jsonl",
        "/etc/cron.d/x.jsonl",
        "a\\b.jsonl",
        "réq 日.jsonl",
    ],
)
def test_names_are_only_echoed(name: str) -> None:
    """Whatever a name looks like, it is kept as it is: no path is ever made of it."""
    assert check_filename(name) == name


@pytest.mark.parametrize(
    "name", ["", "r.json", "r.jsonl.gz", "r.jsonl\n", "a\0.jsonl", "x" * 5_000 + ".jsonl"]
)
def test_names_that_are_refused(name: str) -> None:
    """Another extension, control characters and endless names are refused."""
    with pytest.raises(FileRefused):
        check_filename(name)
