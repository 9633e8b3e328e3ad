"""The docs tell what the code does: settings, error codes, metrics, links and pictures."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.metrics import MetricWrapperBase

from gridline.catalog.cards import catalogue
from gridline.settings import described
from gridline.telemetry import metrics

CODE_POSITIONS = {"LineError": 0, "Ending": 1}
"""Calls that take an error code by position, and at which one."""

MAKE_ONLY = {"GRIDLINE_TORCH_INDEX"}
"""Variables of the Makefile: programs never see them."""


def text_of(node: ast.AST | None) -> str | None:
    """The text of a string constant, or None."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def error_codes(tree: ast.Module) -> Iterator[str]:
    """Codes that a file can put into an error: ``code="…"``, ``default_code = "…"``, ``{"code": "…"}``, by position.

    A table named ``…_CODES`` holds pairs whose first half is a code.
    """
    for node in ast.walk(tree):
        found: list[ast.AST | None] = []
        if isinstance(node, ast.Call):
            found = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = CODE_POSITIONS.get(name, len(node.args))
            found += node.args[place : place + 1]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            named = getattr(target, "id", getattr(target, "attr", ""))
            if named in {"default_code", "error_code"}:
                found = [node.value]
            elif named.endswith("_CODES") and isinstance(node.value, ast.Dict):
                found = [one.elts[0] for one in node.value.values if isinstance(one, ast.Tuple)]
        elif isinstance(node, ast.Dict):
            found = [
                value for key, value in zip(node.keys, node.values, strict=True) if text_of(key) == "code"
            ]
        choices = [one for one in found if isinstance(one, ast.IfExp)]
        found += [one for choice in choices for one in (choice.body, choice.orelse)]
        yield from (code for code in map(text_of, found) if code)


def documented(page: str) -> set[str]:
    """First cells of the page's tables, without their back-ticks."""
    return set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))


@pytest.mark.parametrize("page", [".env.example", "docs/configuration.md"])
def test_every_setting_is_documented(page: str, texts: dict[str, str]) -> None:
    """Each setting stands in the example file and in the docs, and no other one does."""
    named = set(re.findall(r"\bGRIDLINE_[A-Z_]+[A-Z]\b", texts[page]))
    assert named - MAKE_ONLY == {name for name, _, _ in described()}


def test_the_docs_tell_each_settings_meaning(texts: dict[str, str]) -> None:
    """docs/configuration.md holds the meaning that the code gives, word for word."""
    page = texts["docs/configuration.md"].replace("\\|", "|")
    assert [name for name, _, meaning in described() if meaning not in page] == []


def test_every_error_code_is_documented(texts: dict[str, str], product: dict[str, ast.Module]) -> None:
    """Each code that code can give stands in docs/errors.md with its meaning and next step."""
    codes = {code for tree in product.values() for code in error_codes(tree)}
    assert len(codes) > 20
    assert codes - documented(texts["docs/errors.md"]) == set()


def test_no_error_code_is_made_up(texts: dict[str, str], product: dict[str, ast.Module]) -> None:
    """Each code in docs/errors.md stands somewhere in the code."""
    spoken = {text for tree in product.values() for text in map(text_of, ast.walk(tree)) if text}
    assert documented(texts["docs/errors.md"]) - spoken == set()


def test_a_code_is_seen_wherever_it_is_given() -> None:
    """Codes are found as a keyword, as a class's default and by position."""
    source = (
        'class E:\n    default_code = "a"\nraise E("…", code="b")\nLineError("c", "…")\nx.error_code = "d"'
    )
    assert set(error_codes(ast.parse(source))) == {"a", "b", "c", "d"}


def metric_names() -> dict[str, str]:
    """Metric name as scraped, by the constant that holds it."""
    held = {name: one for name, one in vars(metrics).items() if isinstance(one, MetricWrapperBase)}
    found = {}
    for name, one in held.items():
        (family,) = one.describe()
        found[name] = family.name + ("_total" if family.type == "counter" else "")
    return found


def test_every_metric_is_documented(texts: dict[str, str]) -> None:
    """Each metric stands in docs/operations.md, and no other one does."""
    page = texts["docs/operations.md"]
    assert set(re.findall(r"`(gridline_[a-z_]+)`", page)) >= set(metric_names().values())
    assert {one for one in documented(page) if one.startswith("gridline_")} == set(metric_names().values())


def test_every_metric_is_counted_somewhere(product: dict[str, ast.Module]) -> None:
    """A metric that nobody sets would be a lie on the page."""
    used = {
        name
        for path, tree in product.items()
        if not path.startswith("gridline/telemetry/")
        for node in ast.walk(tree)
        for name in (getattr(node, "attr", None), getattr(node, "id", None), getattr(node, "name", None))
    }
    assert set(metric_names()) - used == set()


def in_millions(nanos: int) -> str:
    """Nano-credits per token as credits per million tokens, as the page writes them; "" for nothing."""
    return f"{nanos // 1000}.{nanos % 1000:03d}" if nanos else ""


def test_the_docs_tell_each_models_price(texts: dict[str, str]) -> None:
    """docs/models.md has one row per card, with its context, dimensions, prices and whether it is offered."""
    rows = re.findall(r"^\| ([a-z0-9.-]+) \|(.*)\|$", texts["docs/models.md"], re.MULTILINE)
    told = {}
    for name, rest in rows:
        cells = [cell.strip() for cell in rest.split("|")]
        if len(cells) == 8 and name != "id":
            told[name] = (cells[2], cells[3], cells[4], cells[5], cells[7].split(":")[0])
    assert told == {
        card.id: (
            f"{card.context_tokens:,}",
            f"{card.dimensions:,}" if card.dimensions else "",
            in_millions(card.input_price_nanos),
            in_millions(card.output_price_nanos),
            "yes" if card.offered else "no",
        )
        for card in catalogue().values()
    }


def broken_links(path: str, text: str, root: Path) -> list[str]:
    """Relative links and pictures of a Markdown page that lead nowhere."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    targets = [one.split("#")[0] for one in re.findall(r"\]\(([^)\s]+)\)", prose)]
    local = [one for one in targets if one and "://" not in one and not one.startswith("mailto:")]
    return [one for one in local if not (root / path).parent.joinpath(one).exists()]


def test_every_link_leads_somewhere(root: Path, texts: dict[str, str]) -> None:
    """Links between pages, and pictures, exist."""
    pages = {path: text for path, text in texts.items() if path.endswith(".md")}
    assert {path: found for path, text in pages.items() if (found := broken_links(path, text, root))} == {}


def test_a_broken_link_is_seen(root: Path) -> None:
    """A link to a missing page is found, one to a page that exists is not."""
    assert broken_links("docs/a.md", "[x](gone.md) [y](../LICENSE) [z](https://example.org)", root) == [
        "gone.md"
    ]


def test_every_decision_is_listed(texts: dict[str, str]) -> None:
    """docs/adr/README.md links each record."""
    records = {Path(path).name for path in texts if re.match(r"docs/adr/\d{4}-", path)}
    assert records == set(re.findall(r"\((\d{4}-[\w-]+\.md)\)", texts["docs/adr/README.md"]))


def test_every_make_target_in_the_docs_exists(texts: dict[str, str]) -> None:
    """``make x`` in a page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z][a-z-]*):", texts["Makefile"], re.MULTILINE))
    pages = {path: text for path, text in texts.items() if path.endswith(".md")}
    said = {
        path: set(re.findall(r"(?:`|^\$? ?|&& )make ([a-z][a-z-]+)", text, re.MULTILINE))
        for path, text in pages.items()
    }
    assert {path: names - targets for path, names in said.items() if names - targets} == {}
