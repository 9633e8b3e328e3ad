"""Holds answers of the live server to its own document: status, codes, headers, media type, schema, key by key."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import jsonschema_rs
from flask import Flask
from werkzeug.exceptions import MethodNotAllowed, NotFound

from api.app import create_app
from api.reference.document import build, routes

BEFORE_ROUTING = {"unknown_url", "method_not_allowed", "invalid_http", "headers_too_large", "not_implemented"}
"""Codes of refusals that belong to no operation."""


class Answer(Protocol):
    """What every HTTP client has of an answer."""

    status_code: int
    headers: Any

    def json(self) -> Any:
        """The body as JSON."""


class Described:
    """The document of one application, and the answers that fit it."""

    def __init__(self, app: Flask) -> None:
        self.document = build(app)
        self._app = app
        self._paths = {route.view: route.path for route in routes(app)}
        self._seen: set[tuple[str, int]] = set()

    @property
    def seen(self) -> set[tuple[str, int]]:
        """Operation and status of every answer that was held to the document so far."""
        return self._seen

    def operation(self, method: str, url: str) -> Mapping[str, Any] | None:
        """The operation that a request goes to; None where it is no described call."""
        adapter = self._app.url_map.bind("localhost")
        try:
            endpoint, _ = adapter.match(unquote(urlsplit(url).path), "GET" if method == "HEAD" else method)
        except (NotFound, MethodNotAllowed):
            return None
        item = self.document["paths"].get(self._paths[self._app.view_functions[endpoint]], {})
        found: Mapping[str, Any] | None = item.get("get" if method == "HEAD" else method.lower())
        return found

    def problems(self, method: str, url: str, answer: Answer) -> list[str]:
        """What of an answer the document does not say."""
        operation = self.operation(method, url)
        kind = str(answer.headers.get("content-type", "")).partition(";")[0]
        body = answer.json() if kind == "application/json" and method != "HEAD" else None
        code = body["error"]["code"] if isinstance(body, dict) and "error" in body else None
        if operation is None or code in BEFORE_ROUTING:
            return []
        said = operation["responses"].get(str(answer.status_code))
        if said is None:
            return [f"{operation['operationId']} never answers {answer.status_code}"]
        if "$ref" in said:
            said = self.document["components"]["responses"][said["$ref"].rpartition("/")[2]]
        self._seen.add((operation["operationId"], answer.status_code))
        found = [
            f"header {name} is missing"
            for name in self._required_headers(said)
            if name.lower() not in answer.headers
        ]
        if kind not in said["content"]:
            return [*found, f"media type {kind!r}"]
        if code is not None and code not in said["x-codes"]:
            found.append(f"code {code!r} is not among {said['x-codes']}")
        if body is not None:
            found += self._misfits(said["content"][kind]["schema"]["$ref"], body)
        return found

    def _required_headers(self, said: Mapping[str, Any]) -> Iterator[str]:
        known = self.document["components"]["headers"]
        return (name for name in said["headers"] if known[name]["required"])

    def _misfits(self, reference: str, body: object) -> list[str]:
        return [f"{one.instance_path}: {one.message}" for one in self._validator(reference).iter_errors(body)]

    @cache  # noqa: B019 - one document a session
    def _validator(self, reference: str) -> Any:
        whole = {
            "$ref": reference,
            "components": {"schemas": _closed(self.document["components"]["schemas"])},
        }
        return jsonschema_rs.Draft202012Validator(whole)


def _closed(schema: Any) -> Any:
    """The same with every object closed: a key that the document does not name is a misfit here."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _closed(one) for key, one in schema.items()}
    if "properties" in schema and schema.get("type") == "object":
        inner.setdefault("additionalProperties", False)
    return inner


@cache
def described() -> Described:
    """The default dialect's."""
    return Described(create_app())


def check(answer: Any) -> None:
    """Raise on an answer that the document does not describe; fits httpx's hook for answers."""
    described_here = described()
    if str(answer.headers.get("content-type", "")).startswith("application/json"):
        answer.read()
    request = answer.request
    found = described_here.problems(request.method, str(request.url), answer)
    if found:
        raise AssertionError(f"{request.method} {request.url.path} {answer.status_code}: {'; '.join(found)}")
