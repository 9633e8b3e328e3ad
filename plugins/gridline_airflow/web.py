"""What of Gridline stands in Airflow's web server: the operator's pages and the ways to them.

Airflow's other processes, tasks among them, load the door too and must not pay for a web framework: there this names
no view, and nothing of ``gridline_airflow.pages`` is imported.
"""

import sys
from typing import Any
from urllib.parse import urlsplit

from gridline.settings import settings

PAGES = "/pluginsv2/gridline"
"""Airflow mounts views of plugins under its first part."""


def in_web_server() -> bool:
    """Whether this process is Airflow's api-server: the only one that shows pages."""
    return sys.argv[1:2] == ["api-server"]


def views() -> list[dict[str, Any]]:
    """The pages, for the web server alone. Without names: Airflow would add a menu of its own for old plugins."""
    if not in_web_server():
        return []
    from gridline_airflow.pages.views import VIEWS

    return [{"view": view} for view in VIEWS]


def ways() -> list[dict[str, Any]]:
    """The entry in Airflow's menu, a plain link, and the tab on a run that shows its batch."""
    # Airflow may stand behind a proxy, under a path of its own.
    base = urlsplit(settings().public_airflow_url).path + PAGES
    return [
        {"name": "Gridline", "href": f"{base}/", "destination": "nav", "category": "browse"},
        {
            "name": "Operator",
            "href": f"{base}/batches/{{RUN_ID}}?inside=run",
            "destination": "dag_run",
            "url_route": "gridline-operator",
        },
    ]
