import json

from gpu_jobs.partition import Line, in_engine_order


def line(number: int, *messages: str, tokens: int = 1) -> Line:
    body = {"messages": [{"role": "user", "content": text} for text in messages]}
    return Line(number, "c", json.dumps(body), tokens)


def test_engine_order() -> None:
    """Lines that share a beginning stand together, the longest of them first; no line is lost."""
    lines = [
        line(0, "system b", "x"),
        line(1, "system a", "x", tokens=5),
        line(2, "system b", "y", tokens=9),
        line(3, "system a", "y", tokens=7),
        line(4, "alone"),
    ]
    assert [one.line for one in in_engine_order(lines)] == [4, 3, 1, 2, 0]


def test_engine_order_of_embeddings() -> None:
    """Embedding lines stand by length, so that a step of the engine holds like with like."""
    lines = [Line(number, "c", json.dumps({"input": "x"}), tokens) for number, tokens in enumerate((3, 9, 5))]
    assert [one.line for one in in_engine_order(lines)] == [1, 2, 0]
