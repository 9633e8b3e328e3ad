"""The page docs/conformance.md: the suite's cases, read from its source without importing it, and their results."""

import ast
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "conformance.md"
PROFILES = ROOT / "gridline" / "profiles"
PASSED = "passed"
NOT_RUN = "not run"
SECTIONS = {
    "clients": "The whole way, with each SDK",
    "airflow": "Airflow's own provider",
    "a1": "Bytes, encodings, lines and forms",
    "a2": "Files",
    "a3": "Create, look, cancel, results",
    "a4": "Chat requests",
    "a5": "Embeddings",
    "a7": "What SDKs do by themselves",
}
"""What a test file's name begins with, and what the page calls its cases."""

_INTRODUCTION = """\
# Conformance

What this platform was held against, and what came of it: the suite in `tests/conformance`, which acts as customers do,
over HTTP. `make conformance` runs it on a real stack (PostgreSQL, Airflow, vLLM), `make conformance PROFILE=gridport` on one
that speaks another [dialect](dialects.md); when all of it passed, the run writes its column of this page.
Most cases are faults that users of other batch services reported; each names its sources.

Clients: {clients}.

To run the suite against another address, yours or any OpenAI-compatible batch service:
```bash
read -rs TOKEN; export TOKEN       # and OTHER_TOKEN, of a second account, for the cases that need one
make conformance BASE_URL=https://batch.example/v1
```
Models are taken from the service's list if it says which endpoints they serve; else name them: `CONFORMANCE_CHAT=…`,
`CONFORMANCE_EMBEDDING=…`. What needs the operator's side is skipped there. The suite's account should have room for
ten open batches and several hundred calls a minute.

## What the dialects change
The cases are the same for every dialect: each asks the platform what it takes (`GET /gridline/v1/platform`) and is held to that.
In these the right answer is another one:

| case | {dialects} | why |
|---|{rule}---|
{differences}
"""


@dataclass(frozen=True)
class Case:
    """One test of the suite."""

    section: str
    number: str
    """The number of the case, "" where the test is no numbered one."""
    name: str
    title: str
    client: str


def cases() -> list[Case]:
    """Every test of the suite, in the page's order."""
    found = [case for path in sorted(HERE.glob("test_*.py")) for case in _cases(path)]
    order = list(SECTIONS)
    return sorted(found, key=lambda one: (order.index(one.section), _rank(one.number)))


def _cases(path: Path) -> list[Case]:
    section = path.name.removeprefix("test_").partition("_")[0].removesuffix(".py")
    tests = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    return [Case(section, _number(one.name), one.name, _title(one), _client(section, one)) for one in tests]


def _number(name: str) -> str:
    number = re.match(r"test_case_(m?\d+)_", name)
    return number[1].lstrip("0").upper() if number else ""


def _rank(number: str) -> int:
    return int(number.removeprefix("M") or 0)


def _title(test: ast.FunctionDef) -> str:
    """The promise: the docstring's first paragraph, on one line."""
    text = (ast.get_docstring(test) or "").partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _client(section: str, test: ast.FunctionDef) -> str:
    if section == "airflow":
        return "Airflow's provider"
    asked = {one.arg for one in test.args.args}
    return "each SDK" if "walk" in asked else "plain HTTP"


def sources() -> dict[str, str]:
    """Where each numbered case comes from."""
    found: dict[str, str] = tomllib.loads((HERE / "sources.toml").read_text())["sources"]
    return found


def clients() -> list[str]:
    """The clients with the versions that are pinned."""
    pinned = [
        re.search(r"^openai==([0-9.]+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE)
        for name in ("platform.txt", "openai-oldest.txt")
    ]
    provider = re.search(
        r"^apache-airflow-providers-openai==([0-9.]+)",
        (ROOT / "requirements" / "dev.txt").read_text(),
        re.MULTILINE,
    )
    node = json.loads((HERE / "node" / "package.json").read_text())["dependencies"]["openai"]
    python = [f"openai-python {one[1]}" for one in pinned if one]
    airflow = [f"apache-airflow-providers-openai {provider[1]}"] if provider else []
    return [*python, f"openai-node {node}", *airflow, "plain HTTP"]


def dialects() -> list[str]:
    """The dialects that come with the platform, each a column of the page."""
    return sorted(one.stem for one in PROFILES.glob("*.toml"))


def render(results: dict[str, dict[str, str]]) -> str:
    """The page, with the result of each test by dialect and by its name."""
    known, lines = sources(), [_introduction()]
    every = cases()
    for section, title in SECTIONS.items():
        shown = [one for one in every if one.section == section]
        if shown:
            numbered = any(one.number for one in shown)
            lines += [f"## {title}", *_table(shown, results, known if numbered else None), ""]
    return "\n".join(lines)


def _introduction() -> str:
    changed: list[dict[str, str]] = tomllib.loads((HERE / "differences.toml").read_text())["differences"]
    rows = [_row(one["case"], *(one[name] for name in dialects()), one["why"]) for one in changed]
    return _INTRODUCTION.format(
        clients=", ".join(clients()),
        dialects=" | ".join(dialects()),
        rule="---|" * len(dialects()),
        differences="\n".join(rows),
    )


def _table(shown: list[Case], results: dict[str, dict[str, str]], known: dict[str, str] | None) -> list[str]:
    numbered = known is not None
    head = ["case"] * numbered + ["promise", "with", *dialects()] + ["reported in"] * numbered
    rows = [_row(*head), "|" + "---|" * len(head)]
    for one in shown:
        cells = [
            one.title,
            one.client,
            *(results.get(name, {}).get(one.name, NOT_RUN) for name in dialects()),
        ]
        rows.append(_row(*([one.number, *cells, known.get(one.number, "")] if known is not None else cells)))
    return rows


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _told() -> dict[str, dict[str, str]]:
    """The results that stand on the page, by dialect and test; a promise that was reworded has none."""
    found: dict[str, dict[str, str]] = {name: {} for name in dialects()}
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in PAGE.read_text().splitlines()
        if line.startswith("|")
    ]
    by_title = {one.title: one.name for one in cases()}
    columns: list[str] = []
    for row in rows:
        if "promise" in row:
            columns = row
        elif columns and len(row) == len(columns):
            test = by_title.get(row[columns.index("promise")])
            for name in found.keys() & set(columns) if test else ():
                found[name][str(test)] = row[columns.index(name)]
    return found


class Results:
    """What came of each test of a run, whatever its parameters: passed only if all of it passed."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = {}

    def add(self, name: str, outcome: str) -> None:
        """Note the outcome of a test or of one of its parts."""
        self._found.setdefault(name.partition("[")[0], set()).add(outcome)

    def write(self, dialect: str) -> str:
        """Write the dialect's column of the page if every case passed; says what was done."""
        results = {
            name: PASSED if found == {PASSED} else "/".join(sorted(found))
            for name, found in self._found.items()
        }
        not_passed = [one.name for one in cases() if results.get(one.name) != PASSED]
        if not_passed:
            return f"docs/conformance.md is left as it was; not passed or not run: {', '.join(not_passed)}"
        PAGE.write_text(render(_told() | {dialect: results}))
        return f"docs/conformance.md written: {len(results)} cases passed in the dialect {dialect}"
