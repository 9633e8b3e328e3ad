"""What a benchmark keeps of its rounds, and the picture of it."""

from pathlib import Path

from bench.engine import Round, keep
from bench.engine_sides import Done
from bench.plots import draw, read


def rounds(*ratios: float) -> list[Round]:
    """Rounds in which we were so many times as fast."""
    return [Round(10, Done(1.0, 1.0, 10), Done(one, 1.0, 10)) for one in ratios]


def test_a_figure_that_is_measured_again_replaces_its_rounds(tmp_path: Path) -> None:
    """Each run writes what it measured, and leaves the rounds of other figures as they were."""
    path = tmp_path / "measured" / "engine.jsonl"
    keep(path, {"distinct": rounds(1.0, 1.2), "stack": rounds(0.9)})
    keep(path, {"distinct": rounds(1.5)})
    assert [(one["figure"], one["theirs_seconds"]) for one in read(path)] == [
        ("stack", 0.9),
        ("distinct", 1.5),
    ]


def test_the_picture_says_median_and_aim(tmp_path: Path) -> None:
    """Each figure has a bar as long as the median of its rounds, beside its aim."""
    path = tmp_path / "engine.jsonl"
    keep(path, {"distinct": rounds(0.8, 1.0, 1.6), "stack": rounds(0.7)})
    (axes,) = draw(read(path)).axes
    assert [round(bar.get_width(), 2) for bar in axes.containers[0]] == [0.7]
    assert sorted(text.get_text() for text in axes.texts) == ["0.70 (aim 0.9)", "1.00 (aim 1)"]
