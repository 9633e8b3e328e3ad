"""Hostile requests as bytes, each from a seed: odd addresses, headers, framings, bodies, forms, ranges, protocols."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

CANARY = "Zq7canary"
"""Stands in everything that a customer may send, and may stand in no log."""
ODD = (
    "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "../../etc/passwd", "%00", "file-%00", "%ff%fe", "%c0%af",
    "%0d%0aX-Injected:%201", "\r\nX-Injected: 1", "%", "%zz", "%u0041", "//", "/./", ";a=b", "\\..\\..\\x", "'--", '"', "<script>",
    "{}", "😀", "é", "\u202e", "a" * 300, "a" * 9_000, "\t", " ", "#x", "?", "&", "=", "*", "~", "\x7f", "\x1b[31m", "0", "-1",
    "None", "null", "file-" + "A" * 24, "batch_" + "A" * 24, "batch_" + "é" * 24, CANARY,
)  # fmt: skip
"""Text that somebody, somewhere, took for something else."""
ROUTES = (
    "/v1/files", "/v1/files/{}", "/v1/files/{}/content", "/v1/batches", "/v1/batches/{}", "/v1/batches/{}/cancel",
    "/v1/models", "/v1/models/{}", "/v1/uploads", "/v1/uploads/{}/parts", "/v1/uploads/{}/complete",
    "/v1/uploads/{}/cancel", "/openai/v1/files/{}", "/gridline/v1/account", "/gridline/v1/batches/{}/receipt",
    "/gridline/v1/batches/{}/events", "/gridline/v1/batches/{}/results", "/docs/{}", "/docs", "/openapi.json",
    "/healthz", "/readyz", "/metrics", "/{}", "/v1/{}/{}", "//v1/files", "/v1/files/", "/v1/./files",
)  # fmt: skip
METHODS = (
    "GET",
    "POST",
    "DELETE",
    "HEAD",
    "PUT",
    "PATCH",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "get",
    "BREW",
    "G" * 300,
    "PO ST",
    "é",
)


@dataclass(frozen=True)
class Known:
    """Who asks, and what there is to be asked for."""

    token: str
    file_id: str
    batch_id: str
    upload_id: str


@dataclass(frozen=True)
class Attempt:
    """Bytes for one connection. ``answers``: how many must come at least; none where the bytes are no whole request."""

    kind: str
    data: bytes
    answers: int = 1

    @property
    def whole(self) -> bool:
        """Whether the server can know that the client is done."""
        return self.answers > 0


Headers = Sequence[tuple[str, str | bytes]]


def request(
    known: Known, method: str, target: str, headers: Headers = (), body: bytes | None = None
) -> bytes:
    """A request with the customer's token; the headers given come last and may repeat one of these."""
    lines: list[tuple[str, str | bytes]] = [
        ("Host", "gridline"),
        ("Authorization", f"Bearer {known.token}"),
        ("Connection", "close"),
    ]
    if body is not None:
        lines.append(("Content-Length", str(len(body))))
    head = f"{method} {target} HTTP/1.1\r\n".encode()
    for name, value in (*lines, *headers):
        head += name.encode() + b": " + (value if isinstance(value, bytes) else value.encode()) + b"\r\n"
    return head + b"\r\n" + (body or b"")


def odd(random: Random) -> str:
    """One or two odd texts."""
    return "".join(random.choices(ODD, k=random.choice((1, 1, 2))))


def some_id(random: Random, known: Known) -> str:
    """An id that exists, or something odd."""
    return random.choice((known.file_id, known.batch_id, known.upload_id, *[odd(random) for _ in range(6)]))


def address(random: Random, known: Known) -> Attempt:
    """An odd method at an odd path."""
    target = re.sub("{}", lambda _: some_id(random, known), random.choice(ROUTES))
    method = random.choice(METHODS) if random.random() < 0.4 else "GET"
    body = b"{}" if method in {"POST", "PUT", "PATCH"} else None
    return Attempt("address", request(known, method, target, [("Content-Type", "application/json")], body))


def query(random: Random, known: Known) -> Attempt:
    """Odd query parameters on the lists."""
    path = random.choice(("/v1/files", "/v1/batches", f"/gridline/v1/batches/{known.batch_id}/results"))
    names = ("limit", "after", "order", "purpose", "before", "limit[]", CANARY)
    values = (
        odd(random),
        "0",
        "-1",
        "1e3",
        "9" * 40,
        "\uff11\uff12",
        "",
        "10001",
        "+5",
        "0x10",
        known.file_id,
        known.batch_id,
    )
    pairs = [f"{random.choice(names)}={random.choice(values)}" for _ in range(random.randint(1, 4))]
    return Attempt("query", request(known, "GET", f"{path}?{random.choice('&;').join(pairs)}"))


def header(random: Random, known: Known) -> Attempt:
    """Odd headers on a harmless call."""
    long = "x" * random.choice((1_000, 60_000, 70_000))
    odds: list[tuple[str, str | bytes]] = [
        ("X-Long", long), ("User-Agent", "\x1b[2J\x1b[31m" + CANARY), ("User-Agent", b"\xff\xfe\x80"), ("X-A", "a\r\n b"),
        ("X-A", "a\nX-Injected: 1"), ("X-A", "a\rX-Injected: 1"), ("X-Null", b"a\x00b"), ("X Space", "a"), ("", "no name"),
        ("Content-Type", odd(random)), ("Accept", "text/html"), ("Accept", odd(random)), ("Accept-Encoding", "gzip, br, x"),
        ("Authorization", "Bearer"), ("Authorization", "Basic " + CANARY), ("Authorization", b"Bearer \xff"),
        ("Authorization", f"bearer  {known.token}"), ("Cookie", "a=" + CANARY), ("Host", "evil.example"), ("Host", odd(random)),
        ("X-Forwarded-For", odd(random)), ("X-Forwarded-Proto", "javascript"), ("Forwarded", "for=" + CANARY),
        ("X-HTTP-Method-Override", "DELETE"), ("Origin", "https://evil.example"), ("Origin", "null"),
        ("Access-Control-Request-Method", "DELETE"), ("x-request-id", odd(random)), ("Upgrade", "h2c"), ("Upgrade", "websocket"),
        ("If-None-Match", '"' + odd(random)), ("If-Modified-Since", odd(random)), ("Content-Encoding", "gzip"), ("Trailer", "X"),
        ("Date", odd(random)), ("Via", odd(random)), ("Connection", "keep-alive, Host"), ("Keep-Alive", "max=-1"),
    ]  # fmt: skip
    given = random.sample(odds, k=random.randint(1, 4))
    target = random.choice(("/v1/files", "/v1/models", "/gridline/v1/account", "/healthz"))
    return Attempt("header", request(known, random.choice(("GET", "HEAD", "OPTIONS")), target, given))


def framing(random: Random, known: Known) -> Attempt:
    """Lengths that lie, chunks that are none, and two requests where one is said to be."""
    length: list[tuple[Headers, bytes, int]] = [
        ([("Content-Length", "-1")], b"{}", 1), ([("Content-Length", "abc")], b"{}", 1), ([("Content-Length", "+2")], b"{}", 1),
        ([("Content-Length", "2, 2")], b"{}", 1), ([("Content-Length", "0x2")], b"{}", 1), ([("Content-Length", "")], b"{}", 1),
        ([("Content-Length", "2"), ("Content-Length", "3")], b"{}", 1), ([("Content-Length", "\uff19")], b"{}", 1),
        ([("Content-Length", "1" * 30)], b"{}", 0), ([("Content-Length", "500000000")], b"{}", 1),
        ([("Content-Length", "100")], b"{", 0), ([("Content-Length", "2"), ("Transfer-Encoding", "chunked")], b"0\r\n\r\n", 1),
        ([("Transfer-Encoding", "chunked")], b"2\r\n{}\r\n0\r\n\r\n", 1), ([("Transfer-Encoding", "gzip, chunked")], b"0\r\n\r\n", 1),
        ([("Transfer-Encoding", "chunked")], b"zz\r\n{}\r\n", 1), ([("Transfer-Encoding", "chunked")], b"-2\r\n{}\r\n", 1),
        ([("Transfer-Encoding", "chunked")], b"2;" + b"x" * 70_000 + b"\r\n{}\r\n0\r\n\r\n", 1),
        ([("Transfer-Encoding", "chunked")], b"2\r\n{}XX0\r\n\r\n", 1), ([("Transfer-Encoding", "chunked")], b"ffffffffffffffffff\r\n", 0),
        ([("Transfer-Encoding", "xchunked")], b"{}", 1), ([("Transfer-Encoding", "\x0bchunked")], b"0\r\n\r\n", 1),
        ([("Transfer-Encoding", "chunked")], b"2\r\n{}\r\n0\r\nX-Injected: 1\r\n\r\n", 1), ([("Transfer-Encoding", "identity")], b"", 1),
        ([("Expect", "100-continue"), ("Content-Length", "2")], b"{}", 1), ([("Expect", odd(random)), ("Content-Length", "2")], b"{}", 1),
    ]  # fmt: skip
    headers, body, answers = random.choice(length)
    target = random.choice(("/v1/batches", "/v1/uploads", "/v1/files"))
    return Attempt(
        "framing",
        request(known, "POST", target, [("Content-Type", "application/json"), *headers]) + body,
        answers,
    )


def protocol(random: Random, known: Known) -> Attempt:
    """What is no HTTP/1.1, or not only one request."""
    one = request(known, "GET", "/healthz")
    kept = b"GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n"
    many = [
        (b"GET /healthz\r\n\r\n", 0), (b"GET /healthz HTTP/0.9\r\n\r\n", 0), (b"GET /healthz HTTP/1.0\r\n\r\n", 1),
        (b"GET /healthz HTTP/9.9\r\nHost: g\r\nConnection: close\r\n\r\n", 0), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), 0), (b"\r\n\r\n\r\n" + one, 1), (b"\n", 0), (b"\0" * 100, 0),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n", 1), (b"GET", 0),
        (b"OPTIONS * HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n", 1), (b"GET /healthz HTTP/1.1\nHost: g\nConnection: close\n\n", 0),
        (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n", 1), (kept * 20 + one, 21),
        (b"GET http://[::1 HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n", 1), (b"GET //evil.example/%2f.. HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n", 1),
        (b"GET  /healthz  HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n", 1), (b"x" * 70_000, 0), (b"GET /" + b"a" * 70_000, 0),
        (request(known, "POST", "/v1/batches", [("Content-Type", "application/json")], b"{}") + one, 1), (b"<html>\r\n\r\n", 0),
        (b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 9_000 + b"Connection: close\r\n\r\n", 1), (random.randbytes(2_000), 0),
    ]  # fmt: skip
    data, answers = random.choice(many)
    return Attempt("protocol", data, answers)


def json_value(random: Random, known: Known) -> str:
    """A value that is not what any key wants, as JSON text."""
    texts = [
        "NaN", "Infinity", "-0", "1e400", "1" * 400, "1" * 5_000, "1.5", "true", "null", "[]", "{}", '""', '"\\u0000"', '"\\ud800"',
        "[" * 20_000 + "]" * 20_000, '{"a":' * 300 + "1" + "}" * 300, '"\\uD83D\\uDE00"', '"' + "x" * 600 + '"', "9223372036854775808",
        json.dumps(CANARY), json.dumps(odd(random)), json.dumps({odd(random): odd(random)}), json.dumps([odd(random)]),
        json.dumps({str(n): "v" for n in range(17)}), json.dumps(known.file_id), json.dumps(known.batch_id), '"/v1/embeddings"',
        '{"anchor":"created_at","seconds":1e30}', '{"anchor":"created_at","seconds":true}', '{"anchor":[],"seconds":3600}',
    ]  # fmt: skip
    return random.choice(texts)


BODIES: dict[str, tuple[str, ...]] = {
    "/v1/batches": ("input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after"),
    "/v1/uploads": ("filename", "purpose", "bytes", "mime_type", "expires_after"),
    "/v1/uploads/{}/complete": ("part_ids", "md5"),
}


def json_body(random: Random, known: Known) -> Attempt:
    """A JSON body that is broken, huge, or of other types; nearly good ones too."""
    target, keys = random.choice(list(BODIES.items()))
    good = {
        "input_file_id": json.dumps(known.file_id), "endpoint": '"/v1/chat/completions"', "completion_window": '"24h"',
        "filename": '"r.jsonl"', "purpose": '"batch"', "bytes": "9", "mime_type": '"a/b"', "part_ids": '["part_1"]',
    }  # fmt: skip
    pairs = {key: good.get(key, "null") for key in keys}
    for key in random.choices([*keys, CANARY, "account_id", "__proto__", "id"], k=random.randint(1, 3)):
        pairs[key] = json_value(random, known)
    text = "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in pairs.items()) + "}"
    whole = text.encode("utf-8", "surrogatepass")
    data = random.choice((
        *[whole] * 8, whole + b"x", whole[:-1], b"\xef\xbb\xbf" + whole, whole + b" " * (1024 * 1024 + 1 - len(whole)), b"\xff" + whole,
        b"\xff\xfe" + text.encode("utf-16-le", "replace"), b"[" + whole + b"]", b"", b"{" + whole[1:-1] + b"," + whole[1:], b'{"a":1,' * 9,
    ))  # fmt: skip
    kinds = (
        "application/json",
        "application/json; charset=utf-16",
        "text/plain",
        "APPLICATION/JSON",
        "application/json;;=",
        "",
    )
    kind = "application/json" if random.random() < 0.8 else random.choice(kinds)
    target = target.format(random.choice((known.upload_id, some_id(random, known))))
    return Attempt("json", request(known, "POST", target, [("Content-Type", kind)], data))


def ranged(random: Random, known: Known) -> Attempt:
    """Odd ranges of a file that exists."""
    values = (
        "bytes=abc", "bytes=", "bytes=-", "bytes=-0", "bytes=0-", "bytes=5-1", "bytes=999999-", "bytes=-999999", "bytes=0-0,1-1",
        "bytes=" + ",".join(f"{n}-{n}" for n in range(2_000)), "lines=0-1", "bytes = 0-1", "bytes=0-99999999999999999999999", "bytes=\u0660-\u0661",
        "BYTES=0-1", "=0-1", odd(random), "bytes=1-2-3", "bytes=0x0-1", "bytes=-1-1",
    )  # fmt: skip
    headers: list[tuple[str, str | bytes]] = [("Range", random.choice(values))]
    if random.random() < 0.3:
        headers.append(("If-Range", random.choice(('"x"', 'W/"x"', odd(random)))))
    return Attempt(
        "range", request(known, random.choice(("GET", "HEAD")), f"/v1/files/{known.file_id}/content", headers)
    )


def repeated(random: Random, known: Known) -> Attempt:
    """A good create with odd keys of its own and odd counts of retries."""
    body = json.dumps(
        {"input_file_id": known.file_id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    ).encode()
    keys: list[str | bytes] = [
        "",
        "k" * 129,
        "k" * 128,
        "é",
        b"\xff",
        b"\xed\xa0\x80",
        "a\tb",
        CANARY,
        "😀",
        " ",
        odd(random),
    ]
    counts: list[str | bytes] = [
        "0",
        "1",
        "-1",
        "1.5",
        "9" * 50,
        "abc",
        "",
        "٣",
        b"\xff",
        "1, 2",
        odd(random),
    ]
    headers: list[tuple[str, str | bytes]] = [("Content-Type", "application/json")]
    headers += [("Idempotency-Key", random.choice(keys))] * random.choice((0, 1, 1, 2))
    headers += [("X-Stainless-Retry-Count", random.choice(counts))] * random.choice((0, 1, 1, 2))
    return Attempt("repeated", request(known, "POST", "/v1/batches", headers, body))


Maker = Callable[[Random, Known], Attempt]
MAKERS: tuple[Maker, ...] = (address, query, header, framing, protocol, json_body, ranged, repeated)
