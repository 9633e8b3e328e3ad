"""docs/openapi.json is what the code serves (``make openapi`` writes it), it is valid, and it leaves nothing unsaid."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema_rs import validator_for
from openapi_spec_validator import OpenAPIV31SpecValidator

from api.app import create_app
from api.reference import headers, parameters
from api.reference.document import build, routes, text_of
from api.reference.introduction import TAGS
from api.reference.operations import said_by, speaks
from api.reference.refusals import REFUSALS
from gridline.batches import requests as batch_requests
from gridline.files import requests as file_requests
from gridline.profiles.profile import FOLDER, load
from gridline.settings import Settings

PAGE = "docs/openapi.json"
DIALECTS = sorted(one.stem for one in FOLDER.glob("*.toml"))
IDENTITIES = "identities"
OURS = {
    "createFile", "listFiles", "retrieveFile", "deleteFile", "downloadFile", "createUpload", "addUploadPart",
    "completeUpload", "cancelUpload", "createBatch", "listBatches", "retrieveBatch", "cancelBatch", "listModels",
    "retrieveModel",
}  # fmt: skip
"""OpenAI's names of the calls that we share."""


@pytest.fixture(scope="module", params=[*DIALECTS, IDENTITIES])
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The document of a dialect, or of a platform that believes an identity provider."""
    if request.param == IDENTITIES:
        believing = Settings(oidc_issuer="https://id.example", oidc_client_id="gridline")
        return build(create_app(load("gridline"), config=believing))
    return build(create_app(load(request.param)))


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every call of a document."""
    for item in document["paths"].values():
        yield from (one for method, one in item.items() if method != "servers")


def every(node: Any, key: str) -> Iterator[Any]:
    """Every value under that key, at any depth."""
    if isinstance(node, dict):
        for name, one in node.items():
            if name == key:
                yield one
            elif name != "examples":
                yield from every(one, key)
    elif isinstance(node, list):
        for one in node:
            yield from every(one, key)


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every schema with keys of its own, at any depth."""
    return (one for one in every({"": node}, "properties") if isinstance(one, dict))


def test_the_document_is_what_the_code_serves(texts: dict[str, str]) -> None:
    """What is checked in is made of the code as it is: ``make openapi`` brings it up to date."""
    assert texts[PAGE] == text_of(build(create_app(load("gridline"))))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_route_says_what_it_serves(dialect: str) -> None:
    """A route without an operation beside its view (api.reference.operations) cannot be added."""
    app = create_app(load(dialect))
    assert [f"{one.method} {one.path}" for one in routes(app) if not speaks(one.view)] == []
    assert [one.path for one in routes(app) if said_by(one.view) is None] == ["/docs", "/docs/{name}"]


@pytest.mark.thorough
def test_the_document_is_valid(document: dict[str, Any]) -> None:
    """It is OpenAPI 3.1, by the specification's own schema."""
    assert [str(one.message) for one in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_every_operation_is_whole(document: dict[str, Any]) -> None:
    """Each has a summary, a description, an id of its own, a chapter, a 2xx with an example, and its refusals."""
    found = list(operations(document))
    assert len({one["operationId"] for one in found}) == len(found) > 15
    assert {one["operationId"] for one in found} >= OURS
    assert list(dict.fromkeys(one["tags"][0] for one in found)) == list(TAGS)
    for one in found:
        assert re.fullmatch(r"[A-Z].*[^.]", one["summary"]), one["operationId"]
        assert one["description"].startswith(tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")), one["operationId"]
        good = [answer for status, answer in one["responses"].items() if status.startswith("2")]
        assert good
        assert all("example" in content for answer in good for content in answer["content"].values())
        needed = {"401", "403", "500", "503"} if one["security"] else {"500"}
        assert set(one["responses"]) >= needed, one["operationId"]
        if "requestBody" in one:
            assert set(one["responses"]) >= {"400", "413", "415"}, one["operationId"]


def test_everything_has_a_meaning(document: dict[str, Any]) -> None:
    """Each schema, and each key of one, says what it is; each parameter and header too."""
    known = document["components"]
    silent = [
        f"{component}.{name}"
        for component, schema in known["schemas"].items()
        for keys in objects(schema)
        for name, one in keys.items()
        if not any("description" in said or "$ref" in said for said in (one, *one.get("anyOf", ())))
    ]
    silent += [name for part in known.values() for name, one in part.items() if not one.get("description")]
    assert silent == []


def test_every_component_is_used(document: dict[str, Any]) -> None:
    """Nothing is described that no call takes or gives."""
    used = set(every(document, "$ref"))
    for part in ("schemas", "parameters", "headers", "responses"):
        unused = {name for name in document["components"][part] if f"#/components/{part}/{name}" not in used}
        assert unused == set(), part


@pytest.mark.thorough
def test_every_example_fits(document: dict[str, Any]) -> None:
    """What the page shows as an example is an instance of its schema."""
    schemas = document["components"]["schemas"]
    for content in every([document["paths"], document["components"]["responses"]], "content"):
        for one in content.values():
            validator = validator_for(one["schema"] | {"components": {"schemas": schemas}})
            assert [error.message for error in validator.iter_errors(one["example"])] == []
    for name, schema in schemas.items():
        for example in every(schema, "examples"):
            assert example, name
    for part in ("parameters", "headers"):
        for name, one in document["components"][part].items():
            assert validator_for(one["schema"]).is_valid(one["example"]), name


def test_the_document_names_every_code(texts: dict[str, str]) -> None:
    """Codes and their statuses are those of docs/errors.md, but for what is refused before a call is found."""
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \|", texts["docs/errors.md"], re.MULTILINE)
    told = {code: int(status) for code, status in rows}
    known = {code: status for code, (status, _) in REFUSALS.items()}
    outside = {"unknown_url": 404, "method_not_allowed": 405, "invalid_http": 400}
    outside |= {"headers_too_large": 431, "not_implemented": 501}
    elsewhere = {"invalid_json_line": 400, "model_not_found": 404}
    assert told | elsewhere == known | outside


def test_bodies_have_the_keys_that_are_read(document: dict[str, Any]) -> None:
    """A key that a body's reader takes stands in the document, and no other one."""
    schemas = document["components"]["schemas"]
    for name, keys in {
        "BatchCreate": batch_requests.KEYS,
        "UploadCreate": file_requests.UPLOAD_KEYS,
        "UploadComplete": file_requests.COMPLETE_KEYS,
        "EstimateCreate": batch_requests.ESTIMATE_KEYS,
    }.items():
        assert tuple(schemas[name]["properties"]) == tuple(keys), name


def test_every_parameter_and_header_has_a_use() -> None:
    """The tables that operations pick from hold nothing that no operation picks."""
    apps = [create_app(load(name)) for name in ("gridline", "gridport")]
    said = [one for app in apps for route in routes(app) if (one := said_by(route.view)) is not None]
    assert {name for one in said for name in one.parameters} == parameters.names()
    sent = {name for one in said for name in one.sends} | set(headers.ALWAYS) | set(headers.COUNTED)
    sent |= {name for status in range(400, 600) for name in headers.of_refusal(status)}
    assert sent == set(headers.components())


def test_the_document_is_json_that_anything_reads(texts: dict[str, str]) -> None:
    """No NaN, no repeated keys: what a strict reader reads is what was written."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({name for name, _ in found}) == len(found)
        return dict(found)

    assert json.loads(texts[PAGE], object_pairs_hook=pairs)["openapi"] == "3.1.0"
