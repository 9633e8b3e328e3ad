"""Tests mirror the rooms, and each says in a sentence what it promises."""

import ast
import re
from pathlib import Path

FOLDERS = {
    "gridline", "api", "dags", "plugins", "gpu_jobs", "dashboard", "house",
    "journeys", "properties", "faults", "deploy", "bench", "conformance", "hostile",
    "simulation", "runbooks",
}  # fmt: skip


def silent_tests(tree: ast.Module) -> list[str]:
    """Test functions without a docstring of one full sentence."""
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    return [
        one.name
        for one in tests
        if not re.search(r"\w.*\s.*[.:?!]$", (ast.get_docstring(one) or ""), re.DOTALL)
    ]


def test_every_test_states_its_promise(tests: dict[str, ast.Module]) -> None:
    """Each test has a docstring that ends like a sentence."""
    assert {path: names for path, tree in tests.items() if (names := silent_tests(tree))} == {}


def test_a_silent_test_is_seen() -> None:
    """A test without a docstring, or with a label instead of a sentence, is found."""
    source = 'def test_a(): ...\ndef test_b():\n    "works"\ndef test_c():\n    "It holds its promise."'
    assert silent_tests(ast.parse(source)) == ["test_a", "test_b"]


def test_tests_mirror_the_rooms(root: Path, tests: dict[str, ast.Module]) -> None:
    """tests/gridline/<room> exists for rooms that exist, and top-level folders are the known ones."""
    parts = [path.split("/")[1:] for path in tests]
    assert {one[0] for one in parts if len(one) > 1} <= FOLDERS
    rooms = {one[1] for one in parts if one[0] == "gridline" and len(one) > 2}
    assert {room for room in rooms if not (root / "gridline" / room).is_dir()} == set()
    flat = {one[1] for one in parts if one[0] == "gridline" and len(one) == 2}
    subjects = {name.removeprefix("test_") for name in flat if name.startswith("test_")}
    assert {name for name in subjects if not (root / "gridline" / name).is_file()} == set()


def test_every_module_says_what_it_holds(product: dict[str, ast.Module]) -> None:
    """Each file of the product opens with a docstring: what it holds and, where it matters, what it must not know."""
    assert [path for path, tree in product.items() if not ast.get_docstring(tree)] == []
