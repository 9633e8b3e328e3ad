"""Makes the OpenAPI 3.1 document of an application: its routes, and what each view says of itself."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flask import Flask

from api import auth, identities
from api.reference import headers, parameters, refusals, schemas
from api.reference.introduction import TAGS, introduction
from api.reference.operations import FORM, JSON, Content, Operation, said_by
from api.reference.shapes import Schema
from gridline import __version__
from gridline.profiles.profile import Profile

Json = dict[str, Any]


@dataclass(frozen=True)
class Route:
    """One method at one address; ``path`` is below a base path of the dialect where ``based``."""

    method: str
    path: str
    view: Callable[..., Any]
    scope: str | None
    variables: tuple[str, ...]
    based: bool


def routes(app: Flask) -> Iterator[Route]:
    """Every call that the application takes, once, whatever the number of base paths."""
    profile: Profile = app.config["PROFILE"]
    seen: set[tuple[str, str]] = set()
    for rule in app.url_map.iter_rules():
        base = next((one for one in profile.base_paths if rule.rule.startswith(f"{one}/")), "")
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule.removeprefix(base))
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            if (method, path) not in seen:
                seen.add((method, path))
                scope = auth.scope_of(app, rule.endpoint, method)
                variables = tuple(re.findall(r"{(\w+)}", path))
                yield Route(method, path, app.view_functions[rule.endpoint], scope, variables, bool(base))


def build(app: Flask) -> Json:
    """The document of this application in its dialect; a test holds that no route is missing."""
    profile: Profile = app.config["PROFILE"]
    known = schemas.components(profile, identities=identities.offered(app))
    paths: dict[str, Json] = {}
    described = [(route, said) for route in routes(app) if (said := said_by(route.view)) is not None]
    for route, said in sorted(described, key=_reading_order):
        item = paths.setdefault(route.path, {} if route.based else {"servers": [{"url": "/"}]})
        item[route.method.lower()] = _operation(route, said, known)
    used = {name for _, said in described for name in said.parameters}
    return _framed(profile, paths, known, parameters.components(used))


def _reading_order(described: tuple[Route, Operation]) -> tuple[int, str, int]:
    """By chapter, and within it as the views stand in their files."""
    route, said = described
    code = route.view.__code__
    return list(TAGS).index(said.tag), route.view.__module__, code.co_firstlineno


def _framed(
    profile: Profile, paths: dict[str, Json], known: dict[str, Schema], taken: dict[str, Json]
) -> Json:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Gridline API",
            "summary": "Batch inference with OpenAI's API.",
            "version": __version__,
            "description": introduction(profile),
            "license": {"name": "Apache-2.0"},
        },
        "servers": [{"url": base} for base in profile.base_paths],
        "tags": [{"name": name, "description": meaning} for name, meaning in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": known,
            "parameters": taken,
            "headers": headers.components(),
            "responses": _lone_refusals(paths),
            "securitySchemes": {"token": _token(), auth.SESSION: _session()},
        },
    }


def text_of(document: Json) -> str:
    """The document as it is served and checked in."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _token() -> Json:
    return {
        "type": "http",
        "scheme": "bearer",
        "description": "A token that you made, or that the operator gave you. Its scopes: `read` for calls that only look, "
        "`routing:write` for those that change something. A new token has both. The secret of a session does as well.",
    }


def _session() -> Json:
    return {
        "type": "http",
        "scheme": "bearer",
        "description": "The secret of a session, which signing up or in answers. No token opens these calls.",
    }


def _operation(route: Route, said: Operation, known: dict[str, Schema]) -> Json:
    needs, security = _needs(route.scope)
    shown: Json = {
        "operationId": said.id,
        "tags": [said.tag],
        "summary": said.summary,
        "description": said.description + needs,
        "security": security,
    }
    given = [parameters.in_path(one) for one in route.variables]
    given += [{"$ref": f"#/components/parameters/{one}"} for one in said.parameters]
    if given:
        shown["parameters"] = given
    if said.body is not None:
        shown["requestBody"] = {"required": True, "content": _content(said.body, known)}
    shown["responses"] = _responses(route, said, known)
    return shown


def _needs(scope: str | None) -> tuple[str, list[Json]]:
    """What a call asks for, in a sentence and in OpenAPI's terms."""
    if scope is None:
        return "", []
    if scope == auth.SESSION:
        return "\n\nNeeds a session; a token is refused.", [{auth.SESSION: []}]
    return f"\n\nNeeds a token with scope `{scope}`.", [{"token": [scope]}]


def _responses(route: Route, said: Operation, known: dict[str, Schema]) -> Json:
    counted = headers.ALWAYS if route.scope is None else headers.ALWAYS + headers.COUNTED
    shown: Json = {}
    for status, content in said.answers.items():
        meaning = known[content.schema]["description"]
        more = tuple(one for one in said.sends if one != "Content-Range" or status == 206)  # noqa: PLR2004 - HTTP's own
        shown[str(status)] = {
            "description": meaning,
            "headers": _headers(counted + more),
            "content": _content(content, known),
        }
        if said.also is not None and status == 200:  # noqa: PLR2004 - HTTP's own
            shown["200"]["content"] |= _content(said.also, known)
    queries = any(parameters.in_query(one) for one in said.parameters)
    codes = refusals.codes_of(said, token=route.scope is not None, queries=queries)
    for status, named in codes.items():
        alone = len(named) == 1
        shown[str(status)] = (
            {"$ref": f"#/components/responses/{named[0]}"} if alone else _refusal(status, named)
        )
    return shown


def _lone_refusals(paths: dict[str, Json]) -> Json:
    """The refusals with one code only, each said once for all calls."""
    said = json.dumps(paths)
    return {
        code: _refusal(status, [code])
        for code, (status, _) in refusals.REFUSALS.items()
        if f'"#/components/responses/{code}"' in said
    }


def _refusal(status: int, codes: list[str]) -> Json:
    meanings = "\n".join(f"- `{code}`: {refusals.REFUSALS[code][1]}" for code in codes)
    message = refusals.REFUSALS[codes[0]][1]
    error = {
        "message": f"{message[0].upper()}{message[1:]}. …",
        "type": refusals.error_type(status),
        "param": None,
        "code": codes[0],
    }
    return {
        "description": meanings,
        "headers": _headers(headers.ALWAYS + headers.of_refusal(status)),
        "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}, "example": {"error": error}}},
        "x-codes": codes,
    }


def _headers(names: tuple[str, ...]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _content(content: Content, known: dict[str, Schema]) -> Json:
    schema = {"$ref": f"#/components/schemas/{content.schema}"}
    shown: Json = {"schema": schema, "example": schemas.example_of(schema, known)}
    if content.media_type == FORM:
        keys = known[content.schema]["properties"]
        shown["encoding"] = {
            name: _file_part(name) for name, one in keys.items() if "contentMediaType" in one
        }
    return {content.media_type: shown}


def _file_part(name: str) -> Json:
    """That a field of a form is a file, which needs a file name."""
    disposition = {
        "description": "With a file name.",
        "schema": {"type": "string"},
        "example": f'form-data; name="{name}"; filename="requests.jsonl"',
    }
    return {"headers": {"Content-Disposition": disposition}}
