"""Draws what a benchmark kept: `make bench-plots`, from docs/measured/engine.jsonl to docs/images/engine.svg."""

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from gridline.settings import ROOT

MEASURED = ROOT / "docs" / "measured" / "engine.jsonl"
DRAWN = ROOT / "docs" / "images" / "engine.svg"
NAMES = {
    "distinct": "a partition of\ndistinct prompts",
    "shared": "a partition of prompts\nthat share beginnings",
    "stack": "a batch through\nthe whole stack",
}
MET, MISSED = "#1f9d5c", "#d07a1c"

Kept = dict[str, Any]


def read(path: Path) -> list[Kept]:
    """The rounds that the benchmark kept."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def draw(rounds: Iterable[Kept]) -> Figure:
    """Ratios beside run_batch: a bar for the median of each figure, a point a round, a line where its aim is."""
    by_name: dict[str, list[Kept]] = defaultdict(list)
    for one in rounds:
        by_name[one["figure"]].append(one)
    figure = Figure(figsize=(7.2, 1.0 + 0.9 * len(by_name)), layout="constrained")
    axes = figure.add_subplot()
    names = sorted(by_name, reverse=True)
    for place, found in enumerate(by_name[name] for name in names):
        ratios = [one["theirs_seconds"] / one["ours_seconds"] for one in found]
        middle, aim = statistics.median(ratios), found[0]["aim"]
        axes.barh(place, middle, height=0.5, color=MET if middle >= aim else MISSED)
        axes.plot(ratios, [place] * len(ratios), "o", color="black", markersize=3)
        axes.vlines(aim, place - 0.36, place + 0.36, colors="black", linestyles="dotted")
        axes.text(max(*ratios, aim) + 0.03, place, f"{middle:.2f} (aim {aim:g})", va="center", fontsize=9)
    axes.set_yticks(range(len(by_name)), [NAMES.get(one, one) for one in names])
    axes.set_xlim(0, 1.25 * max(axes.get_xlim()[1], 1))
    axes.set_xlabel("requests a second, run_batch = 1 (bar: median, points: rounds, dotted: aim)")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> int:
    """Draw the plot anew."""
    # Texts stay texts and ids stay the same, so that a picture changes only where a figure does.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gridline"}):
        draw(read(MEASURED)).savefig(DRAWN, metadata={"Date": None})
    print(f"{DRAWN.relative_to(ROOT)} drawn from {MEASURED.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
