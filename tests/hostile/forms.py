"""Hostile multipart forms: bombs, cut ones, nested ones, forms without a boundary."""

from random import Random

from tests.hostile.attempts import CANARY, Attempt, Known, odd, request

LINE = (
    b'{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":"'
    + CANARY.encode()
    + b'"}}\n'
)


def part(name: str, content: bytes, *, filename: str | None = None, head: bytes = b"") -> bytes:
    """One part, its boundary before it."""
    named = f'; filename="{filename}"' if filename is not None else ""
    start = f'--b\r\nContent-Disposition: form-data; name="{name}"{named}\r\n'.encode()
    return start + head + b"\r\n" + content + b"\r\n"


def form(random: Random, known: Known) -> Attempt:
    """A form for a file or a part of an upload; seldom a good one."""
    end = b"--b--\r\n"
    purpose = part("purpose", b"batch")
    file = part("file", LINE, filename="r.jsonl")
    data = part("data", LINE, filename="p")
    bodies = [
        (purpose + b"--b\r\n\r\nx\r\n" + end), (part("f", b"v") * 2_000 + end), (part("purpose", b"x" * 10_000_000) + end),
        part("file", LINE, filename="r.jsonl", head=b"X-Long: " + b"x" * 65_536 + b"\r\n") + end, purpose + file[:-20], purpose + file,
        part("file", b"--c\r\nContent-Disposition: form-data; name=file\r\n\r\nx\r\n--c--", filename="r.jsonl", head=b"Content-Type: multipart/mixed; boundary=c\r\n") + purpose + end,
        purpose + purpose + file + end, purpose + file + file + end, file + end, purpose + end, end, b"", b"--b", b"--b\r\n", b"\r\n" * 5_000 + end,
        purpose + part("file", LINE, filename=random.choice(("../../../tmp/pwn.jsonl", "/etc/cron.d/x.jsonl", "a\x00.jsonl", "", ".jsonl", odd(random) + ".jsonl"))) + end,
        purpose + part(odd(random).replace("\r\n", " "), b"v") + file + end, purpose.replace(b"batch", b"\xff\xfe") + file + end, part("purpose", odd(random).encode()) + file + end,
        purpose + part("file", b"\x1f\x8b" + random.randbytes(500), filename="r.jsonl") + end, purpose + part("file", b"\xff\xfe{\0", filename="r.jsonl") + end,
        purpose + part("file", b"", filename="r.jsonl") + end, purpose + part("file", b"[" * 20_000, filename="r.jsonl") + end, random.randbytes(3_000), purpose + file + end,
        purpose + file.replace(b"form-data", b"attachment") + end, (purpose + file + end).replace(b"\r\n", b"\n"), b"x" * 600_000 + purpose + file + end,
        data + end, data + data + end, part("data", b"x") + end, part("data", b"", filename="p") + end, data[:-5], purpose + file + end + b"x" * 3_000,
        purpose + part("file", LINE, filename="r.jsonl", head=b"Content-Transfer-Encoding: base64\r\nContent-Length: -1\r\n") + end,
        purpose + part("expires_after[seconds]", random.choice((b"-1", b"1e9", b"9" * 20, b"", "٣".encode()))) + part("expires_after[anchor]", b"created_at") + file + end,
    ]  # fmt: skip
    body = random.choice(bodies)
    kinds = ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=" + "b" * 300, 'multipart/form-data; boundary="b"',
             "multipart/form-data; boundary=é", "multipart/mixed; boundary=b", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b; boundary=c")  # fmt: skip
    kind = "multipart/form-data; boundary=b" if random.random() < 0.85 else random.choice(kinds)
    target = random.choice(("/v1/files", "/v1/files", f"/v1/uploads/{known.upload_id}/parts"))
    if random.random() < 0.1:
        # Said to be longer than it is: the client goes away in the middle.
        headers = [("Content-Type", kind), ("Content-Length", str(len(body) + 1_000))]
        return Attempt("form", request(known, "POST", target, headers) + body, answers=0)
    return Attempt("form", request(known, "POST", target, [("Content-Type", kind)], body))
