"""The door through which Airflow finds Gridline: it only names what ``gridline_airflow`` holds.

Airflow runs this file in the scheduler, the triggerer, the api-server and every task process, so it stays thin:
nothing here may import the domain, a web framework or the engine. ``web`` names the pages in the api-server only.
"""

from airflow.plugins_manager import AirflowPlugin  # noqa: TID253  # Airflow's own folder
from gridline_airflow import web
from gridline_airflow.links import BatchPage, batch_tab
from gridline_airflow.listener import Preload


class GridlinePlugin(AirflowPlugin):
    """What Gridline adds to Airflow: tabs on each run, a link on its tasks, quick starts, the operator's pages."""

    name = "gridline"
    listeners = [Preload()]  # noqa: RUF012  # Airflow reads these from the class
    operator_extra_links = [BatchPage()]  # noqa: RUF012
    external_views = [batch_tab(), *web.ways()]  # noqa: RUF012
    appbuilder_views = web.views()
