"""Code knows no dialect by its name: what differs between them is in their files, so a further one needs no code."""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields

import pytest

from gridline.profiles.profile import FOLDER, Profile, load

OURS = "gridline"
"""The product's own name, which code may say of other things: a logger, a database, a command."""
LOOKED_UP = {"get", "getattr", "load", "pop", "setdefault"}


def names() -> set[str]:
    """What the files call their dialects and extensions."""
    files = [tomllib.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.toml")]
    return {one[key] for one in files for key in ("name", "extension")}


def said(tree: ast.AST, known: set[str]) -> Iterator[int]:
    """Lines on which one of these names stands; our own only where it is compared with, looked up or loaded."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                places: list[ast.AST] = [node]
            case ast.Subscript():
                places = [node.slice]
            case ast.MatchValue():
                places = [node.value]
            case ast.Dict():
                places = [key for key in node.keys if isinstance(key, ast.Constant)]
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called)) if called in LOOKED_UP:
                places = list(node.args)
            case ast.Constant() if node.value != OURS:
                places = [node]
            case _:
                places = []
        for place in places:
            yield from (
                one.lineno
                for one in ast.walk(place)
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value in known
            )


def test_no_code_names_a_dialect(product: dict[str, ast.Module]) -> None:
    """Neither a profile's name nor its extension's key is decided by anywhere: the profile is asked."""
    assert names() >= {"gridline", "gridport", "tf"}
    found = {path: sorted(set(said(tree, names()))) for path, tree in product.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "code",
    [
        'if profile.name == "gridport": pass',
        'if profile.name in ("gridline", "other"): pass',
        'shown["gridline"] = 1',
        'shown["tf"]',
        'body.get("gridline")',
        'getattr(batch, "gridline", None)',
        'load("gridline")',
        'match name:\n    case "gridline": pass',
        'EXTENSION = "tf"',
        'RATES = {"gridline": 100}',
    ],
)
def test_names_are_seen(code: str) -> None:
    """The rule above finds every way in which code could name a dialect."""
    assert list(said(ast.parse(code), names()))


@pytest.mark.parametrize("code", ['logging.getLogger("gridline")', 'url(APP, "gridline")', "profile.name"])
def test_the_products_own_name_is_free(code: str) -> None:
    """What is called gridline and is no dialect may be called so."""
    assert not list(said(ast.parse(code), names()))


def test_the_page_is_what_the_files_say(texts: dict[str, str]) -> None:
    """docs/dialects.md has every dialect's paths, endpoints, windows and caps, and every key that a file needs."""
    page = texts["docs/dialects.md"]
    for path in FOLDER.glob("*.toml"):
        one = load(path.stem)
        for word in (one.name, *one.base_paths, *one.endpoints, *one.windows, *one.batch_facts):
            assert re.search(rf"\b{re.escape(word.lstrip('/'))}\b", page), (one.name, word)
        assert f"{one.file_lines_max:,} requests, {one.file_bytes_max // 10**6} MB" in page
        assert f"`{one.extension} {{" in page
    _, _, keys = page.partition("## Another dialect")
    rows = re.findall(r"^\| (`.*?`) \|", keys, re.MULTILINE)
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(told) == sorted(one.name for one in fields(Profile))
