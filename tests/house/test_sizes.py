"""Size budgets: files and functions stay small enough to read in one sitting."""

import ast
from collections.abc import Iterator
from statistics import median, quantiles

import pytest

FILE_LINES_MAX = 300
FILE_LINES_P50 = 110
FILE_LINES_P90 = 200
TEST_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
FUNCTION_LINES_P50 = 9
FUNCTION_LINES_P95 = 35
POSITIONAL_MAX = 4
ARGUMENTS_MAX = 7

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    """Every function and method, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(function: Function) -> int:
    """Lines from ``def`` to the end, docstring included."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def positional(function: Function) -> int:
    """Arguments that may be given by position, self and cls not counted."""
    given = [one.arg for one in function.args.posonlyargs + function.args.args]
    return len(given) - (given[:1] in (["self"], ["cls"]))


def too_long(tree: ast.Module) -> list[str]:
    """Functions over the line budget."""
    return [one.name for one in functions(tree) if length(one) > FUNCTION_LINES_MAX]


def too_many_arguments(tree: ast.Module) -> list[str]:
    """Functions over an argument budget; Python shapes double-underscore methods, and click calls commands by name."""
    shaped = [one for one in functions(tree) if one.name.startswith("__") and one.name != "__init__"]
    shaped += [
        one for one in functions(tree) if any(".command" in ast.unparse(by) for by in one.decorator_list)
    ]
    own = [one for one in functions(tree) if one not in shaped]
    return [
        one.name
        for one in own
        if positional(one) > POSITIONAL_MAX or positional(one) + len(one.args.kwonlyargs) > ARGUMENTS_MAX
    ]


def test_files_are_short(texts: dict[str, str], product: dict[str, ast.Module]) -> None:
    """No file of the product is over 300 lines; half are at most 110, nine of ten at most 200."""
    lines = {path: texts[path].count("\n") for path in product}
    assert {path: count for path, count in lines.items() if count > FILE_LINES_MAX} == {}
    written = [count for count in lines.values() if count > 1]
    assert median(written) <= FILE_LINES_P50
    assert quantiles(written, n=10)[-1] <= FILE_LINES_P90


def test_test_files_are_short(texts: dict[str, str], tests: dict[str, ast.Module]) -> None:
    """No test file is over 400 lines."""
    lines = {path: texts[path].count("\n") for path in tests}
    assert {path: count for path, count in lines.items() if count > TEST_LINES_MAX} == {}


def test_functions_are_short(product: dict[str, ast.Module], tests: dict[str, ast.Module]) -> None:
    """No function is over 60 lines; of the product's, half are at most 9 and nineteen of twenty at most 35."""
    assert {path: names for path, tree in (product | tests).items() if (names := too_long(tree))} == {}
    lengths = [length(one) for tree in product.values() for one in functions(tree)]
    assert median(lengths) <= FUNCTION_LINES_P50
    assert quantiles(lengths, n=20)[-1] <= FUNCTION_LINES_P95


def test_arguments_are_few(product: dict[str, ast.Module]) -> None:
    """At most four arguments come by position (the rest by name), and at most seven in all."""
    assert {path: names for path, tree in product.items() if (names := too_many_arguments(tree))} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def long():\n" + "    pass\n" * 60, [["long"], []]),
        ("def short():\n" + "    pass\n" * 59, [[], []]),
        ("def wide(a, b, c, d, e): ...", [[], ["wide"]]),
        ("def many(a, *, b, c, d, e, f, g, h): ...", [[], ["many"]]),
        ("class A:\n    def fits(self, a, b, c, d, *, e, f, g): ...", [[], []]),
        ("class A:\n    def __exit__(self, a, b, c, d, e): ...", [[], []]),
        ("@ops.command()\ndef limit(a, b, c, d, e): ...", [[], []]),
    ],
)
def test_the_budgets_see_what_is_over(source: str, found: list[list[str]]) -> None:
    """Each budget finds a planted function that is one over, and passes one that fits exactly."""
    tree = ast.parse(source)
    assert [too_long(tree), too_many_arguments(tree)] == found
