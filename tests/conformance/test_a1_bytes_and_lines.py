"""What bytes a file may hold, and how its lines are read: encodings, blank lines, shapes, ids, sizes."""

import json

import pytest

from tests.conformance.batch_service import EMBEDDINGS_ENDPOINT, Service, jsonl, refused

BOM = b"\xef\xbb\xbf"
DEEP = "[" * 20_000 + "]" * 20_000


def test_case_01_only_utf8_is_taken(service: Service) -> None:
    """A file in UTF-16 or a Windows code page is refused at upload, by a message that names the encoding."""
    text = json.dumps(
        service.chat_line("a", messages=[{"role": "user", "content": "5 €"}]), ensure_ascii=False
    )
    for encoding, named in (("utf-16", "UTF-16"), ("utf-16-le", "UTF-16"), ("cp1252", "UTF-8")):
        error = refused(service.upload(f"{text}\n".encode(encoding)), 400, param="file")
        assert named in error["message"], error


def test_case_02_a_byte_order_mark_is_no_part_of_the_first_line(service: Service) -> None:
    """A byte order mark is stripped from the first line, whose id comes back as sent; the file keeps its bytes."""
    data = BOM + jsonl([service.embedding_line(name, name) for name in ("a", "b")])
    ended = service.run(data, EMBEDDINGS_ENDPOINT)
    assert [one["custom_id"] for one in ended.out] == ["a", "b"]
    assert service.content(ended.batch["input_file_id"]) == data


def test_case_03_blank_lines_are_no_requests(service: Service) -> None:
    """Blank lines, CRLF and a missing last newline change nothing; a file of blank lines only has no requests."""
    a, b = (json.dumps(service.embedding_line(name, name)).encode() for name in "ab")
    files = [
        a + b"\n" + b,
        a + b"\n" + b + b"\n",
        a + b"\n" + b + b"\n\n",
        a + b"\n   \n" + b,
        a + b"\r\n" + b + b"\r\n",
    ]
    made = [service.created(data, EMBEDDINGS_ENDPOINT) for data in files]
    for data, batch in zip(files, made, strict=True):
        ended = service.ended(service.finished(batch["id"]), data)
        assert (ended.batch["status"], ended.batch["request_counts"]["total"]) == ("completed", 2)
    blank = service.upload(b"\n\n")
    if blank.status_code == 200:
        (error,) = service.errors_of(service.create(blank.json()["id"]).json()["id"])
    else:
        error = refused(blank, 400)
    assert "no requests" in error["message"] or "empty" in error["message"]


def test_case_03_errors_count_physical_lines(service: Service) -> None:
    """A bad line after a blank second line is reported as line 3."""
    good = json.dumps(service.chat_line("a")).encode()
    assert [one["line"] for one in service.expect_fail(good + b"\n\n{bad\n")] == [3]


def test_case_04_a_line_that_is_no_object_is_named(service: Service) -> None:
    """A line that is JSON but no object, or whose body is none, fails the batch with its number."""
    odd = ["[1,2,3]", '"hello"', "null", "7", "true"]
    no_objects: tuple[object, ...] = ("x", [], None)
    bodies = [{**service.chat_line(f"b{number}"), "body": body} for number, body in enumerate(no_objects)]
    errors = service.expect_fail([service.chat_line("a"), *odd, *bodies])
    assert [one["line"] for one in errors] == list(range(2, 10))
    assert [one["param"] for one in errors[5:]] == ["body"] * 3


def test_case_05_lines_of_another_service_are_explained(service: Service) -> None:
    """Each line of another service's shape is reported with what it lacks: method, url and body."""
    lines = [
        {"custom_id": f"c{number}", "params": {"model": service.chat, "messages": []}} for number in range(3)
    ]
    errors = service.expect_fail(lines)
    assert [one["line"] for one in errors] == [1, 2, 3]
    assert all(name in one["message"] for one in errors for name in ("method", "url", "body"))


def test_case_05_a_poll_stays_small_whatever_is_wrong(service: Service) -> None:
    """As many bad lines as a file may have are listed up to a hundred, and a look at the batch stays below 100 kB."""
    lines = [
        f'{{"custom_id":"c{number}","params":{{}}}}' for number in range(service.dialect.file_requests_max)
    ]
    batch = service.created(lines)
    errors = service.errors_of(batch["id"], seconds=180)
    assert [one["line"] for one in errors][:100] == list(range(1, 101))
    assert len(errors) <= 101
    assert len(service.http.get(f"/batches/{batch['id']}").content) < 100_000


def test_case_06_what_is_no_batch_file_is_refused_early(service: Service) -> None:
    """A .txt is refused at upload and leaves no file behind; a line without its method is named when it is checked."""
    before = [one["id"] for one in service.http.get("/files").json()["data"]]
    refused(service.upload(jsonl([service.chat_line("a")]), filename="notes.txt"), 400, param="file")
    assert [one["id"] for one in service.http.get("/files").json()["data"]] == before
    line = service.chat_line("a")
    del line["method"]
    (error,) = service.expect_fail([line])
    assert (error["line"], error["param"], error["code"]) == (1, "method", "missing_required_parameter")


def test_case_07_one_rule_for_file_names(service: Service) -> None:
    """The name ends in .jsonl, in any case; compressed bytes are refused by the name of their format, never unpacked."""
    import gzip
    import io
    import zipfile

    data = jsonl([service.chat_line("a")])
    assert service.upload(data, filename="R.JSONL").status_code == 200
    for name in ("r.json", "r", "r.jsonl.gz"):
        refused(service.upload(data, filename=name), 400, code="invalid_file_format", param="file")
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("r.jsonl", data)
    refused(service.upload(zipped.getvalue(), filename="r.zip"), 400, param="file")
    for packed, kind in ((gzip.compress(data), "gzip"), (zipped.getvalue(), "zip")):
        assert kind in refused(service.upload(packed), 400, param="file")["message"]


def test_case_08_custom_ids_are_unique_texts(service: Service) -> None:
    """A second use of an id is refused with both line numbers; an empty, missing or other id is refused too."""
    missing = service.chat_line("x")
    del missing["custom_id"]
    odd = [service.chat_line(one) for one in ("", 1, None)]
    errors = service.expect_fail([*(service.chat_line(one) for one in "aba"), *odd, missing])
    assert [one["line"] for one in errors] == [3, 4, 5, 6, 7]
    assert {one["param"] for one in errors} == {"custom_id"}
    assert errors[0]["code"] == "duplicate_custom_id"
    assert "line 1" in errors[0]["message"]


def test_case_08_ids_that_look_alike_are_different(service: Service) -> None:
    """Ids that differ in case or by a space are different ids and come back as they are."""
    lines = [service.embedding_line(one, "x") for one in ("a", "A", "a ")]
    ended = service.run(lines, EMBEDDINGS_ENDPOINT)
    assert [one["custom_id"] for one in ended.out] == ["a", "A", "a "]


def test_case_09_long_and_odd_ids_come_back_as_they_are(service: Service) -> None:
    """Up to 512 characters of any script are an id, formulas and quotes too; they come back as they are."""
    ids = ["a" * 65, "a" * 512, "é" * 64, "=cmd|calc", 'quo"te,', "\u2028"]
    ended = service.run([service.embedding_line(one, "x") for one in ids], EMBEDDINGS_ENDPOINT)
    assert [one["custom_id"] for one in ended.out] == ids


def test_case_09_ids_too_long_or_with_control_characters_are_refused(service: Service) -> None:
    """An id of 513 characters, or with a line break or another control character, is refused with its line."""
    ids = ["a" * 513, "r1\r\nX-Injected: y", "\u0007", "\u0000"]
    errors = service.expect_fail([service.chat_line("good"), *(service.chat_line(one) for one in ids)])
    assert [one["line"] for one in errors] == [2, 3, 4, 5]
    assert {one["param"] for one in errors} == {"custom_id"}
    assert "512" in errors[0]["message"]


def test_case_10_a_lone_surrogate_is_no_text(service: Service) -> None:
    """A line with half a character, as JSON escapes allow, is no JSON here and fails the batch with its number."""
    good = [json.dumps(service.chat_line(name)) for name in "abcd"]
    good[1] = good[1].replace("Say ok", "ok \\ud83d")
    (error,) = service.expect_fail(good)
    assert (error["line"], error["code"]) == (2, "invalid_json_line")


def test_case_11_deep_nesting_is_refused(service: Service) -> None:
    """Twenty thousand nested arrays are a 400 as a request, and an error of their line in a file; so are 900."""
    headers = {"Content-Type": "application/json"}
    refused(service.http.post("/batches", content=DEEP, headers=headers), 400)
    line = json.dumps(service.chat_line("x", user="deep"))
    lines = [json.dumps(service.chat_line("a"))]
    lines += [line.replace('"deep"', deep) for deep in (DEEP, "[" * 900 + "]" * 900)]
    assert [one["line"] for one in service.expect_fail(lines)] == [2, 3]
    assert service.http.get("/models").status_code == 200


def test_case_12_a_line_has_a_limit(service: Service) -> None:
    """A line of 12 MB fails the batch with its number, its size and the limit of 8 MiB."""
    lines = [json.dumps(service.chat_line(name)) for name in "abc"]
    lines[1] = lines[1].replace("Say ok", "x" * 12_000_000)
    (error,) = service.expect_fail(lines)
    assert error["line"] == 2
    assert str(8 * 1024 * 1024) in error["message"]
    assert str(len(lines[1])) in error["message"]


@pytest.mark.timeout(300)
def test_case_12_one_line_of_a_whole_file_is_refused_at_upload(service: Service) -> None:
    """A file that is one line of 199 MB is refused at upload."""
    line = json.dumps(service.chat_line("a")).encode()
    data = line.replace(b"Say ok", b"x" * 199_000_000)
    assert str(8 * 1024 * 1024) in refused(service.upload(data), 400, code="line_too_large")["message"]
