"""Uploads on the wire: any order, any encoding, streamed, and nothing left of a broken one."""

import http.client
import json
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import openai
import pytest

from api import multipart
from gridline.storage.folder import INCOMING
from gridline.storage.objects import Store
from tests.api.conftest import LINES, Customer
from tests.serving import until

B = "xXboundaryXx"


def part(name: str, value: bytes, filename: str | None = None) -> bytes:
    """One part of a form."""
    head = f'Content-Disposition: form-data; name="{name}"'
    head += f'; filename="{filename}"\r\nContent-Type: text/plain' if filename is not None else ""
    return f"--{B}\r\n{head}\r\n\r\n".encode() + value + b"\r\n"


def form(*parts: bytes) -> bytes:
    """A whole form."""
    return b"".join(parts) + f"--{B}--\r\n".encode()


FILE = part("file", LINES, "r.jsonl")
PURPOSE = part("purpose", b"batch")
ANCHOR = part("expires_after[anchor]", b"created_at")


def seconds(value: bytes) -> bytes:
    """The field of an expiry."""
    return part("expires_after[seconds]", value)


def post(customer: Customer, body: bytes | Iterator[bytes], **headers: str) -> tuple[int, dict[str, object]]:
    """Send a body as a form; status and JSON."""
    given = {"Content-Type": f"multipart/form-data; boundary={B}", **headers}
    answer = customer.http.post("/v1/files", content=body, headers=given)
    assert answer.headers["x-request-id"].startswith("req_")
    return answer.status_code, answer.json()


def test_fields_may_stand_in_any_order(ann: Customer) -> None:
    """The file first, as Node sends it, or last, as Python does: the same file, expiry included."""
    orders = [
        form(FILE, PURPOSE, ANCHOR, seconds(b"864000")),
        form(PURPOSE, ANCHOR, seconds(b"864000"), FILE),
        form(seconds(b"864000"), FILE, ANCHOR, PURPOSE),
    ]
    for body in orders:
        status, made = post(ann, body)
        assert status == 200
        assert int(str(made["expires_at"])) == int(str(made["created_at"])) + 864_000
        assert ann.http.get(f"/v1/files/{made['id']}/content").content == LINES


@pytest.mark.parametrize("step", [1, 7, 100])
def test_a_chunked_body_without_a_length_is_whole(ann: Customer, step: int) -> None:
    """Transfer-Encoding: chunked, cut anywhere, arrives as it was sent."""
    body = form(FILE, PURPOSE)
    status, made = post(ann, (body[at : at + step] for at in range(0, len(body), step)))
    assert (status, made["bytes"]) == (200, len(LINES))


def test_what_looks_like_a_boundary_is_kept(ann: Customer) -> None:
    """Bytes that resemble the form's own syntax are the customer's bytes."""
    data = LINES + f'{{"a":"--{B[:-1]}"}}\r\n\r\n--{B[:-2]}\r\n'.encode()
    status, made = post(ann, form(part("file", data, "r.jsonl"), PURPOSE))
    assert (status, made["bytes"]) == (200, len(data))
    assert ann.http.get(f"/v1/files/{made['id']}/content").content == data


def test_every_byte_arrives_however_the_body_is_cut(ann: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line ends, and all but the last byte of a boundary, before, on and after each cut: the file is what was sent."""
    dice = random.Random(7)
    # No b"x": it would make a whole boundary of what only lacks its last byte.
    pieces = [
        b"y",
        b"y" * 50,
        b"\r",
        b"\r\n",
        b"\n",
        f"\r\n--{B[:-1]}".encode(),
        f"--{B[:-1]}".encode(),
        b"\r\n--",
    ]
    for step in (1, 16, 61, 256):
        monkeypatch.setattr(multipart, "CHUNK_BYTES", step)
        data = LINES + b"".join(dice.choices(pieces, weights=[4, 9, 1, 1, 1, 1, 1, 1], k=300))
        status, made = post(ann, form(PURPOSE, part("file", data, "r.jsonl")))
        assert (status, made["bytes"]) == (200, len(data))
        assert ann.http.get(f"/v1/files/{made['id']}/content").content == data


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_upload_is_taken_while_it_arrives(ann: Customer, *, chunked: bool) -> None:
    """Megabytes, which reach their thread before the last is sent: the same file, with a length or without."""
    data = LINES + (b'{"a":"' + "é日".encode() * 100_000 + b'"}\r\n') * 6
    body = form(PURPOSE, part("file", data, "r.jsonl"))
    pieces = (body[at : at + 70_000] for at in range(0, len(body), 70_000))
    status, made = post(ann, pieces if chunked else body)
    assert (status, made["bytes"]) == (200, len(data))
    assert ann.http.get(f"/v1/files/{made['id']}/content").content == data


def test_a_large_upload_cut_short_leaves_nothing(ann: Customer, address: str, store: Store) -> None:
    """A client that hangs up after megabytes: no object, no row, and the unfinished file is gone from the disk."""
    url = urlsplit(address)
    body = form(PURPOSE, part("file", LINES * 20_000, "r.jsonl"))
    with socket.create_connection((url.hostname, url.port or 80)) as connection:
        connection.sendall(upload_head(ann.token, len(body)) + body[:-100])
        until(lambda: unfinished(store))
    until(lambda: not unfinished(store))
    assert store.list("") == []
    assert ann.http.get("/v1/files").json()["data"] == []


def unfinished(store: Store) -> list[Path]:
    """Files of uploads under way."""
    return list(Path(urlsplit(store.url).path).glob(f"{INCOMING}/*"))


def upload_head(token: str, size: int, *more: str) -> bytes:
    """The head of an upload's request."""
    lines = [
        "POST /v1/files HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {token}",
        f"Content-Length: {size}",
    ]
    return "\r\n".join([*lines, f"Content-Type: multipart/form-data; boundary={B}", *more, "", ""]).encode()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("lines", [1, 20_000])
def test_a_client_may_ask_before_it_sends(ann: Customer, address: str, *, known: bool, lines: int) -> None:
    """Expect: 100-continue, as curl sends it: a yes at once; then a good token's file, a wrong one's readable 401."""
    url = urlsplit(address)
    body = form(PURPOSE, part("file", LINES * lines, "r.jsonl"))
    token = ann.token if known else f"{ann.token[:-4]}zzzz"
    with socket.create_connection((url.hostname, url.port or 80), timeout=20) as connection:
        begun = time.monotonic()
        connection.sendall(upload_head(token, len(body), "Expect: 100-continue"))
        assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert time.monotonic() - begun < 0.9
        connection.sendall(body)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        shown = json.loads(answer.read())
    if known:
        assert (answer.status, shown["bytes"]) == (200, len(LINES) * lines)
    else:
        assert (answer.status, shown["error"]["code"]) == (401, "invalid_api_key")


BROKEN = {
    "no file": (form(PURPOSE), "missing_required_parameter", "file"),
    "no purpose": (form(FILE), "missing_required_parameter", "purpose"),
    "nothing": (form(), "missing_required_parameter", "file"),
    "empty body": (b"", "invalid_multipart", None),
    "not a form": (b"hello", "invalid_multipart", None),
    "no end": (FILE + PURPOSE, "invalid_multipart", None),
    "cut in the file": (form(PURPOSE, FILE)[:-60], "invalid_multipart", None),
    "cut in a head": (PURPOSE + f"--{B}\r\nContent-Disp".encode(), "invalid_multipart", None),
    "two files": (form(FILE, FILE, PURPOSE), "invalid_value", "file"),
    "two purposes": (form(PURPOSE, part("purpose", b"evals"), FILE), "invalid_value", "purpose"),
    "other purpose": (form(part("purpose", b"fine-tune"), FILE), "invalid_value", "purpose"),
    "purpose as a file": (form(FILE, part("purpose", b"batch", "x")), "unknown_parameter", "purpose"),
    "file as a field": (form(part("file", LINES), PURPOSE), "invalid_type", "file"),
    "unknown field": (form(FILE, PURPOSE, part("account_id", b"x")), "unknown_parameter", "account_id"),
    "unknown file": (form(FILE, PURPOSE, part("other", b"x", "x.jsonl")), "unknown_parameter", "other"),
    "nameless part": (f"--{B}\r\nContent-Disposition: form-data\r\n\r\nx\r\n--{B}--".encode(), "invalid_multipart", None),
    "headless part": (f"--{B}\r\n\r\nx\r\n--{B}--".encode(), "invalid_multipart", None),
    "huge field": (form(part("purpose", b"x" * 100_000), FILE), "invalid_multipart", None),
    "wrong extension": (form(part("file", LINES, "r.csv"), PURPOSE), "invalid_file_format", "file"),
    "empty file": (form(part("file", b"", "r.jsonl"), PURPOSE), "empty_file", "file"),
    "not JSON": (form(part("file", b"a,b\n", "r.jsonl"), PURPOSE), "invalid_json_line", "file"),
    "gzip": (form(part("file", b"\x1f\x8b\x08xxxxx", "r.jsonl"), PURPOSE), "invalid_file_format", "file"),
    "anchor alone": (form(FILE, PURPOSE, ANCHOR), "invalid_value", "expires_after"),
    "seconds alone": (form(FILE, PURPOSE, seconds(b"3600")), "invalid_value", "expires_after"),
    "other anchor": (
        form(FILE, PURPOSE, part("expires_after[anchor]", b"uploaded"), seconds(b"3600")), "invalid_value", "expires_after",
    ),
    "too soon": (form(FILE, PURPOSE, ANCHOR, seconds(b"3599")), "integer_below_min_value", "expires_after"),
    "too late": (form(FILE, PURPOSE, ANCHOR, seconds(b"2592001")), "integer_above_max_value", "expires_after"),
    "not a number": (form(FILE, PURPOSE, ANCHOR, seconds(b"abc")), "invalid_value", "expires_after"),
    "below zero": (form(FILE, PURPOSE, ANCHOR, seconds(b"-1")), "invalid_value", "expires_after"),
}  # fmt: skip


def test_broken_uploads_are_refused_by_name_and_leave_nothing(ann: Customer, store: Store) -> None:
    """Each is a 400 with code and parameter; no object stays, no row, no used quota."""
    seen = {}
    for name, (body, _, _) in BROKEN.items():
        status, answer = post(ann, body)
        error = answer["error"]
        assert isinstance(error, dict)
        seen[name] = (status, error["code"], error["param"])
    assert seen == {name: (400, code, param) for name, (_, code, param) in BROKEN.items()}
    assert store.list("") == []
    assert ann.http.get("/v1/files").json()["data"] == []
    assert ann.http.get("/gridline/v1/account").json()["limits"]["files"]["current"] == 0


def test_many_parts_and_an_endless_preamble_are_refused(ann: Customer) -> None:
    """The number of parts is bounded, and so is what stands before the first."""
    assert post(ann, form(*[PURPOSE] * 100, FILE))[0] == 413
    assert post(ann, b"x" * 3_000_000)[0] == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Type": "multipart/form-data"}, 400),
        ({"Content-Type": f"multipart/form-data; boundary={B}", "Content-Encoding": "gzip"}, 415),
    ],
)
def test_other_bodies_are_refused(ann: Customer, headers: dict[str, str], status: int) -> None:
    """No form, no boundary, or a compressed body: refused as JSON, never inflated, never a 500."""
    answer = ann.http.post("/v1/files", content=form(FILE, PURPOSE), headers=headers)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, "invalid_request_error")


def test_a_body_that_ends_early_leaves_the_server_well(ann: Customer, address: str, store: Store) -> None:
    """A client that promises more than it sends and goes away leaves nothing, and others are served."""
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port or 80)) as connection:
        head = (
            f"POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ann.token}\r\n"
            f"Content-Type: multipart/form-data; boundary={B}\r\nContent-Length: 100000\r\n\r\n"
        )
        connection.sendall(head.encode() + form(PURPOSE, FILE)[:200])
    assert ann.file()
    assert len(store.list("")) == 1


def test_names_never_become_paths(ann: Customer, store: Store, tmp_path: Path) -> None:
    """Whatever a file is called, its object lies under the account, and nothing is written elsewhere."""
    names = [
        "../../../../tmp/pwn.jsonl",
        "/etc/cron.d/x.jsonl",
        "..\\..\\x.jsonl",
        ".jsonl",
        "<img src=x>.jsonl",
    ]
    for name in names:
        status, made = post(ann, form(part("file", LINES, name.replace("\\", "\\\\")), PURPOSE))
        assert (status, made["filename"]) == (200, name)
    assert len(store.list(f"files/{ann.account_id}/")) == len(names)
    assert {path.name for path in tmp_path.iterdir()} == {"objects"}


def test_an_upload_over_the_cap_is_one_readable_refusal(ann: Customer, store: Store) -> None:
    """One request too many: the SDK raises an API error that states the limit, and does not try again."""
    with pytest.raises(openai.APIStatusError) as caught:
        ann.sdk.files.create(file=("r.jsonl", b"{}\n" * 50_001), purpose="batch")
    assert caught.value.status_code == 413
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert "50000 requests" in caught.value.message
    assert store.list("") == []
    assert ann.file(b"{}\n" * 50_000)
