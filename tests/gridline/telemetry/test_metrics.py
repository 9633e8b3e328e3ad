"""Metrics: names, units and labels that a dashboard can rely on."""

import re
import socket
import urllib.request

import pytest
from prometheus_client import Metric

from gridline.telemetry import metrics

OURS = [family for family in metrics.REGISTRY.collect() if family.name.startswith("gridline_")]


@pytest.mark.parametrize("family", OURS, ids=lambda family: family.name)
def test_every_metric_says_what_it_counts(family: Metric) -> None:
    """A metric has a sentence of help, and base units only."""
    assert family.documentation.endswith(".")
    assert not re.search(r"_(ms|millis|minutes|hours|kb|mb)\b", family.name)


def test_no_label_can_name_a_customer() -> None:
    """Labels stay few and harmless: no account, batch, token or file."""
    labels = {name for one in vars(metrics).values() for name in getattr(one, "_labelnames", ())}
    assert labels <= {
        "method",
        "route",
        "status",
        "endpoint",
        "window",
        "step",
        "kind",
        "result",
        "reason",
        "pool",
        "model",  # of the catalogue
    }


def test_render_holds_our_metrics() -> None:
    """The page holds what was counted, in the text format."""
    metrics.UPLOADED_BYTES.inc(3)
    page, content_type = metrics.render()
    assert b"gridline_uploaded_bytes_total" in page
    assert content_type.startswith("text/plain")


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_serve_answers_on_loopback(free_port: int) -> None:
    """The keeper's page can be scraped at the port that was set."""
    metrics.serve("127.0.0.1", free_port)
    with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/metrics", timeout=5) as answer:
        assert b"gridline_keeper_leader" in answer.read()


def test_a_port_that_nobody_can_scrape_is_refused() -> None:
    """Port 0 would bind somewhere unknown."""
    with pytest.raises(ValueError, match="got 0"):
        metrics.serve("127.0.0.1", 0)
