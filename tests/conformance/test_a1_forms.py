"""How an upload may be sent: broken and odd forms, names, chunks, big ones, and many at once."""

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import quantiles
from urllib.parse import urlsplit

import httpx
import pytest

from tests.conformance.batch_service import Service, jsonl, refused

B = "xXboundaryXx"
FORM = {"Content-Type": f"multipart/form-data; boundary={B}"}
PURPOSE = f'--{B}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'.encode()
END = f"--{B}--\r\n".encode()
DAY = 24 * 3600


def field(name: str, value: str) -> bytes:
    """A text field of a form."""
    return f'--{B}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()


def file_part(data: bytes, filename: str = "r.jsonl") -> bytes:
    """A file part of a form."""
    head = f'--{B}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n\r\n'
    return head.encode() + data + b"\r\n"


def post(service: Service, body: bytes | Iterator[bytes], **headers: str) -> httpx.Response:
    """Send a form as it stands."""
    answer = service.http.post("/files", content=body, headers=FORM | headers)
    if answer.status_code == 200:
        service.uploaded.append(answer.json()["id"])
    return answer


def listed(service: Service) -> list[str]:
    """The ids of every file."""
    return [one["id"] for one in service.http.get("/files").json()["data"]]


def test_case_13_broken_forms_are_refused_and_leave_nothing(service: Service) -> None:
    """A form without boundary or end, with two files, none, or two purposes, or that is none, is a 4xx in JSON."""
    data = jsonl([service.chat_line("a")])
    before = listed(service)
    whole = PURPOSE + file_part(data)
    broken = {
        "no boundary": service.http.post(
            "/files", content=whole + END, headers={"Content-Type": "multipart/form-data"}
        ),
        "no end": post(service, whole),
        "two files": post(service, whole + file_part(data) + END),
        "no file": post(service, PURPOSE + END),
        "two purposes": post(service, PURPOSE + field("purpose", "vision") + file_part(data) + END),
        "empty name": post(service, PURPOSE + file_part(data, "") + END),
        "json": service.http.post("/files", json={"purpose": "batch"}),
    }
    for why, answer in broken.items():
        assert answer.status_code in {400, 415}, why
        refused(answer, answer.status_code)
    cut_short(service, whole + END)
    assert listed(service) == before


def cut_short(service: Service, body: bytes) -> None:
    """Promise a whole body, send a hundred bytes and hang up."""
    connection = connect(service)
    connection.putrequest("POST", f"{urlsplit(service.base_url).path}/files")
    for name, value in (FORM | {"Content-Length": str(len(body)), **authorization(service)}).items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(body[:100])
    connection.close()


def connect(service: Service) -> http.client.HTTPConnection:
    """A bare connection to the service."""
    url = urlsplit(service.base_url)
    secure = url.scheme == "https"
    make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    return make(url.hostname or "", url.port, timeout=60)


def authorization(service: Service) -> dict[str, str]:
    """The header that says who is calling."""
    return {"Authorization": f"Bearer {service.token}"}


def test_case_14_fields_stand_in_any_order(service: Service) -> None:
    """The file may come before or after the other fields; the object is the same, its expiry included."""
    data = jsonl([service.chat_line("a")])
    fields = [
        PURPOSE,
        field("expires_after[anchor]", "created_at"),
        field("expires_after[seconds]", str(10 * DAY)),
    ]
    made = []
    for parts in ([file_part(data), *fields], [*fields, file_part(data)]):
        answer = post(service, b"".join(parts) + END)
        assert answer.status_code == 200, answer.text
        made.append(answer.json())
    for one in made:
        assert one["expires_at"] == one["created_at"] + 10 * DAY
    first, second = ({name: one[name] for name in ("object", "bytes", "filename", "status")} for one in made)
    assert first == second


def test_case_15_an_expiry_has_its_range(service: Service) -> None:
    """An expiry is asked for from 3,600 to 2,592,000 seconds; where seven days are promised, no input is kept for less."""
    data = jsonl([service.chat_line("a")])
    anchor = {"expires_after[anchor]": "created_at"}
    for seconds in ("3599", "2592001", "-1", "1e9", "abc", ""):
        answer = service.upload(data, **anchor, **{"expires_after[seconds]": seconds})
        assert str(refused(answer, 400)["param"]).startswith("expires_after"), seconds
    wrong = {"expires_after[anchor]": "uploaded", "expires_after[seconds]": "3600"}
    assert str(refused(service.upload(data, **wrong), 400)["param"]).startswith("expires_after")
    least = 3600 if service.dialect.capped else 7 * DAY
    for asked, kept in ((3600, least), (2_592_000, 2_592_000)):
        made = service.upload(data, **anchor, **{"expires_after[seconds]": str(asked)}).json()
        assert made["expires_at"] == made["created_at"] + kept


def test_case_16_one_name_for_many_files(service: Service) -> None:
    """Twenty files of one name, uploaded at once, are twenty files with their own bytes."""
    bodies = [jsonl([service.chat_line(f"n{number}")]) for number in range(20)]
    with ThreadPoolExecutor(10) as pool:
        made = list(pool.map(lambda data: service.upload(data, filename="batch.jsonl").json(), bodies))
    assert len({one["id"] for one in made}) == 20
    assert [service.content(one["id"]) for one in made] == bodies


def test_case_16_one_name_in_two_accounts(service: Service, other: Service) -> None:
    """Two accounts upload files of one name, and each reads its own."""
    mine, theirs = (
        one.upload(jsonl([one.chat_line(one.token[-4:])]), filename="batch.jsonl") for one in (service, other)
    )
    assert mine.json()["id"] != theirs.json()["id"]
    assert service.content(mine.json()["id"]) != other.content(theirs.json()["id"])


NAMES = (
    "../../../../tmp/pwn.jsonl", "/etc/cron.d/x.jsonl", "a/../../b.jsonl", ".jsonl", "r\u202egnp.jsonl",
    "<img src=x>.jsonl", "..\\..\\x.jsonl", "%2e%2e%2fx.jsonl",
)  # fmt: skip


def test_case_17_a_file_name_is_a_text_and_no_path(service: Service) -> None:
    """A name with path parts or markup is echoed, never followed; one of 5,000 characters is refused."""
    data = jsonl([service.chat_line("a")])
    for name in NAMES:
        made = service.upload(data, filename=name)
        assert made.status_code == 200, made.text
        assert made.json()["filename"] == name
        assert service.content(made.json()["id"]) == data
    refused(service.upload(data, filename="x" * 5_000 + ".jsonl"), 400, param="file")


def test_case_17_paths_in_ids_lead_nowhere(service: Service) -> None:
    """An id with path parts or a null byte is an id that does not exist."""
    for path in (
        "..%2f..%2fetc%2fpasswd/content",
        "..%2f..%2fetc%2fpasswd",
        "%00",
        "file-%00/content",
        "%2e%2e",
    ):
        url = f"{service.base_url}/files/{path}"
        refused(service.http.get(url), 404)
        assert refused(service.http.delete(f"{service.base_url}/files/{path.split('/')[0]}"), 404)


def test_case_18_chunked_uploads_have_their_real_size(service: Service) -> None:
    """An upload in chunks, without a length, is stored whole."""
    data = jsonl([service.chat_line(f"c{number}") for number in range(2_000)])
    body = PURPOSE + file_part(data) + END
    answer = post(service, (body[at : at + 7_777] for at in range(0, len(body), 7_777)))
    assert answer.status_code == 200, answer.text
    assert answer.json()["bytes"] == len(data)


@pytest.mark.timeout(300)
def test_case_18_a_chunked_upload_over_the_limit_is_refused(service: Service) -> None:
    """A stream of 250 MB in chunks is a readable 413 that names the limit in bytes."""
    line = jsonl([service.chat_line("a")])

    def body() -> Iterator[bytes]:
        yield PURPOSE + file_part(line).removesuffix(b"\r\n")
        for _ in range(250):
            yield b" " * 1_000_000
        yield b"\r\n" + END

    error = refused(post(service, body()), 413, code="file_too_large")
    assert str(service.dialect.file_bytes_max) in error["message"]


def expecting(service: Service, token: str, data: bytes) -> tuple[int, bytes, float]:
    """Upload with ``Expect: 100-continue``, whole whatever comes: status, body and seconds."""
    body = PURPOSE + file_part(data) + END
    connection = connect(service)
    begun = time.monotonic()
    connection.putrequest("POST", f"{urlsplit(service.base_url).path}/files")
    given = {"Authorization": f"Bearer {token}", "Expect": "100-continue", "Content-Length": str(len(body))}
    for name, value in (FORM | given).items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(body)
    answer = connection.getresponse()
    found = answer.status, answer.read(), time.monotonic() - begun
    connection.close()
    return found


def test_case_19_expecting_to_continue_works(service: Service) -> None:
    """With Expect: 100-continue a good upload does not stall, and a bad token gets a readable 401, not a reset."""
    data = jsonl(
        [service.chat_line(f"c{number}") for number in range(min(40_000, service.dialect.file_requests_max))]
    )
    status, text, _ = expecting(service, "gl_live_nobody", data)
    assert (status, json.loads(text)["error"]["code"]) == (401, "invalid_api_key")
    status, text, seconds = expecting(service, service.token, data)
    assert status == 200, text
    assert seconds < 10
    service.uploaded.append(json.loads(text)["id"])


def test_case_20_slow_uploads_leave_others_alone(service: Service) -> None:
    """While four clients upload slowly, looks at a batch answer within a second or two, and all uploads succeed."""
    batch = service.created([service.embedding_line("a", "x")], "/v1/embeddings")
    data = jsonl(
        [service.chat_line(f"c{number}") for number in range(min(20_000, service.dialect.file_requests_max))]
    )
    body = PURPOSE + file_part(data) + END
    step = len(body) // 20 + 1

    def slowly() -> Iterator[bytes]:
        for at in range(0, len(body), step):
            time.sleep(0.2)
            yield body[at : at + step]

    looks = []
    with ThreadPoolExecutor(4) as pool:
        uploads = [pool.submit(post, service, slowly()) for _ in range(4)]
        while not all(one.done() for one in uploads):
            begun = time.monotonic()
            service.batch(batch["id"])
            looks.append(time.monotonic() - begun)
            time.sleep(0.2)
    assert [one.result().status_code for one in uploads] == [200] * 4
    assert quantiles(looks, n=20)[-1] < 2, looks


def test_case_21_the_limit_on_requests_is_inclusive(service: Service) -> None:
    """A file of as many requests as it may have is taken; with one more it is a 413 that names the limit, for good."""
    most = service.dialect.file_requests_max
    line = json.dumps(service.chat_line("a")).encode()
    assert service.upload((line + b"\n") * most).status_code == 200
    answer = service.upload((line + b"\n") * (most + 1))
    assert str(most) in refused(answer, 413, code="too_many_requests_in_file")["message"]
    assert answer.headers["x-should-retry"] == "false"


def test_case_22_an_upload_is_known_at_once(service: Service) -> None:
    """A batch is created from a file right after its upload, over connections of its own, ten times of ten."""
    headers = {"Authorization": f"Bearer {service.token}"}
    for number in range(10):
        file_id = service.file([service.embedding_line(f"n{number}", "x")])
        asked = {"input_file_id": file_id, "endpoint": "/v1/embeddings", "completion_window": "24h"}
        with httpx.Client(base_url=service.base_url, headers=headers, timeout=60) as connection:
            answer = connection.post("/batches", json=asked)
            assert answer.status_code == 200, answer.text
            assert connection.post(f"/batches/{answer.json()['id']}/cancel").status_code == 200
