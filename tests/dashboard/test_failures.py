"""Failed lines by code, read from the beginning of an error file."""

import json

from dashboard import failures


def line(number: int, code: str, *, ran: bool = True) -> bytes:
    """A line of an error file."""
    told = {"code": code, "message": f"message {number}"}
    answered = {"response": {"body": {"error": told}}, "error": None}
    return (
        json.dumps(
            {"custom_id": f"c{number}", **(answered if ran else {"response": None, "error": told})}
        ).encode()
        + b"\n"
    )


def test_the_largest_group_comes_first() -> None:
    """Lines that ran and lines that did not are counted by their codes, across chunks that end anywhere."""
    content = b"".join(
        [line(0, "batch_expired", ran=False), *(line(one, "invalid_request") for one in (1, 2))]
    )
    found = failures.read([content[:50], content[50:]])
    assert [(one.code, one.lines) for one in found.groups] == [("invalid_request", 2), ("batch_expired", 1)]
    assert found.groups[0].first == [("c1", "message 1"), ("c2", "message 2")]
    assert found.whole


def test_a_large_file_is_read_in_part() -> None:
    """Only the beginning is read, whole lines of it, and it says so."""
    one = line(1, "invalid_request")
    content = one * 80_000
    chunks = iter([content[at : at + 65_537] for at in range(0, len(content), 65_537)])
    found = failures.read(chunks)
    assert not found.whole
    assert found.groups[0].lines <= 2 * failures.READ_BYTES_MAX // len(one)
    assert len(found.groups[0].first) == failures.SHOWN_PER_CODE
    assert sum(len(chunk) for chunk in chunks) > len(content) // 2
