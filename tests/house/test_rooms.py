"""What only some rooms may do: read the clock or the environment, assign a status, write entries, use floats."""

import ast
from collections.abc import Callable, Iterator

import pytest

Rule = Callable[[ast.Module], Iterator[int]]
"""A rule yields the numbers of the lines that break it."""

FORBIDDEN_NAMES = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "manager",
    "service",
    "services",
    "base2",
    "misc",
}


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of a name or an attribute, "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return ""


def docstrings(tree: ast.Module) -> set[int]:
    """Identities of the constants that are statements of their own: docstrings and their like."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def floats(tree: ast.Module) -> Iterator[int]:
    """Float literals, the name float, true division and round."""
    for node in ast.walk(tree):
        literal = isinstance(node, ast.Constant) and isinstance(node.value, float)
        named = isinstance(node, ast.Name) and node.id in {"float", "round"}
        divided = isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div)
        if literal or named or divided:
            yield getattr(node, "lineno", 0)


def clocks(tree: ast.Module) -> Iterator[int]:
    """Wall time asked of Python, or of the database inside SQL."""
    asked = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.time_ns"}
    in_sql = ("now()", "current_timestamp", "clock_timestamp", "current_date")
    prose = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = ".".join(dotted(node).split(".")[-2:])
            if name in asked | {"func.now", "func.current_timestamp", "func.clock_timestamp"}:
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (node.lineno for one in node.names if one.name in {"time", "time_ns"})
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield from (node.lineno for word in in_sql if word in node.value.lower())


def environment(tree: ast.Module) -> Iterator[int]:
    """Any look at the process's environment."""
    names = {"environ", "environb", "getenv", "getenvb", "putenv"}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and dotted(node).split(".")[-2:-1] == ["os"]
            and node.attr in names
        ):
            yield node.lineno
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from (node.lineno for one in node.names if one.name in names)


def bare_excepts(tree: ast.Module) -> Iterator[int]:
    """``except:`` without saying what."""
    return (
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.type is None
    )


def asserts(tree: ast.Module) -> Iterator[int]:
    """``assert``, which ``python -O`` removes: raise InvariantBroken instead."""
    return (node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert))


def status_writes(tree: ast.Module) -> Iterator[int]:
    """Assignments to another object's status, in Python or by an UPDATE."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if (
                isinstance(target, ast.Attribute)
                and target.attr == "status"
                and dotted(target.value) != "self"
            ):
                yield target.lineno
        if isinstance(node, ast.Call):
            name = dotted(node.func).split(".")[-1]
            keywords = {keyword.arg for keyword in node.keywords}
            second = node.args[1] if len(node.args) > 1 else None
            if name == "values" and "status" in keywords:
                yield node.lineno
            if name == "setattr" and isinstance(second, ast.Constant) and second.value == "status":
                yield node.lineno


def ledger_writes(tree: ast.Module) -> Iterator[int]:
    """New rows of the books: ``Entry(…)`` and ``Transaction(…)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in {"Entry", "Transaction"}:
            yield node.lineno


RULES: dict[str, tuple[Rule, tuple[str, ...], tuple[str, ...], str]] = {
    # name: (rule, where it holds, files that may, a line that breaks it)
    "float": (
        floats,
        ("gridline/ledger/", "gridline/usage/", "gridline/money.py"),
        (),
        "cost = amount_nanos / 10**9",
    ),
    "clock": (clocks, ("",), ("gridline/clock.py", "gridline/db/work.py"), "started = datetime.now(UTC)"),
    "sql clock": (clocks, ("",), ("gridline/clock.py", "gridline/db/work.py"), "q = text('SELECT now()')"),
    "environment": (environment, ("",), ("gridline/settings.py",), "import os; home = os.environ['HOME']"),
    "bare except": (bare_excepts, ("",), (), "try:\n    pass\nexcept:\n    pass"),
    "assert": (asserts, ("",), (), "assert amount_nanos > 0"),
    "batch status": (
        status_writes,
        ("gridline/", "api/"),
        # An upload has a status of its own, which one file changes too.
        ("gridline/batches/moves.py", "gridline/files/uploads.py"),
        "batch.status = 'failed'",
    ),
    "ledger entries": (
        ledger_writes,
        ("",),
        ("gridline/ledger/posting.py",),
        "session.add(tables.Entry(amount_nanos=1))",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_only_its_rooms_may(name: str, product: dict[str, ast.Module]) -> None:
    """Money is never a float; clock, environment, status and entries each have one door; no assert, no bare except."""
    rule, where, may, _ = RULES[name]
    broken = [
        f"{path}:{line}"
        for path, tree in product.items()
        if path.startswith(where) and path not in may
        for line in rule(tree)
    ]
    assert broken == []


@pytest.mark.parametrize("name", RULES)
def test_the_rule_sees_what_it_forbids(name: str) -> None:
    """Each rule finds a planted line, so that a green run means something."""
    rule, _, _, planted = RULES[name]
    assert list(rule(ast.parse(planted)))


@pytest.mark.parametrize(
    "harmless",
    [
        "batch.status == 'failed'",
        "self.status = 1",
        "t = time.monotonic()",
        "amount_nanos // 2",
        "'Selected now'",
    ],
)
def test_the_rules_leave_harmless_code_alone(harmless: str) -> None:
    """Reading a status, durations and whole division are nobody's business."""
    tree = ast.parse(harmless)
    assert [line for rule, *_ in RULES.values() for line in rule(tree)] == []


def test_no_file_is_named_for_nothing(texts: dict[str, str]) -> None:
    """A room is a noun: no utils, helpers, common, manager or service, as a file or a folder."""
    names = {path: set(path.removesuffix(".py").split("/")) for path in texts if path.endswith(".py")}
    assert [path for path, parts in names.items() if parts & FORBIDDEN_NAMES] == []
