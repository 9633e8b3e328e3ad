"""The alert rules and the Grafana dashboard, held to the metrics that the code serves and to the docs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml  # type: ignore[import-untyped]  # has no types of its own

from gridline.settings import Settings
from gridline.telemetry.metrics import REGISTRY

ROOT = Path(__file__).resolve().parents[2]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())
SCRAPES = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text())
DASHBOARD = json.loads((ROOT / "deploy/grafana/gridline.json").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]


def _served() -> dict[str, set[str]]:
    """Every series that the code serves, with its labels."""
    served = {}
    for collector in REGISTRY._collector_to_names:
        names = REGISTRY._collector_to_names[collector]
        labels = set(getattr(collector, "_labelnames", ()))
        for name in names:
            served[name] = labels | ({"le"} if name.endswith("_bucket") else set())
    return served


SERVED = _served()


def expressions() -> list[str]:
    """All of the rules and of the dashboard."""
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return [rule["expr"] for rule in ALERTS] + panels


def parts(node: Any) -> Iterator[Any]:
    """A parsed expression and all within it."""
    yield node
    for name in ("expr", "lhs", "rhs", "vector_selector", "vs"):
        inner = getattr(node, name, None)
        if inner is not None:
            yield from parts(inner)
    for inner in getattr(node, "args", None) or ():
        yield from parts(inner)


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_asks_for_what_is_served(expression: str) -> None:
    """It is PromQL, and each series and label in it is one that the code serves: a renamed metric alarms nobody."""
    found = [part for part in parts(promql.parse(expression)) if isinstance(part, promql.VectorSelector)]
    assert found
    for selector in found:
        assert selector.name is not None
        assert selector.name in SERVED
        asked = {matcher.name for matcher in selector.matchers.matchers}
        grouped = set(re.findall(r"\w+", ",".join(re.findall(r"by \(([^)]*)\)", expression))))
        assert asked <= SERVED[selector.name]
        assert grouped <= set().union(*(SERVED[str(one.name)] for one in found))


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    """Each has a severity, a sentence, and a section of the docs that exists."""
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["annotations"]["summary"].endswith(".") or rule["annotations"]["summary"].endswith("?")
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert anchor in {re.sub(r"[^a-z -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_expression_of_an_alert_has_a_bound() -> None:
    """A rule compares: without a comparison it would alarm always."""
    for rule in ALERTS:
        assert any(isinstance(part, promql.BinaryExpr) for part in parts(promql.parse(rule["expr"]))), rule[
            "alert"
        ]


def test_the_scrapes_go_where_the_pages_are() -> None:
    """Ports of the example are the settings' defaults, and it loads the rules that stand beside it."""
    targets = {one["job_name"]: one["static_configs"][0]["targets"] for one in SCRAPES["scrape_configs"]}
    default = Settings()
    assert targets == {
        "gridline-api": [f"127.0.0.1:{default.api_port}"],
        "gridline-keeper": [f"127.0.0.1:{default.metrics_port}"],
    }
    assert all((ROOT / "deploy/prometheus" / name).is_file() for name in SCRAPES["rule_files"])


def test_panels_stand_apart() -> None:
    """No panel of the dashboard lies over another, and each has an id of its own."""
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
