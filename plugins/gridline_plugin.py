"""The door through which Airflow finds Gridline: it only names what ``gridline_airflow`` holds.

Airflow runs this file in the scheduler, the triggerer, the api-server and every task process, so it stays thin:
nothing here may import the domain, a web framework or the engine.
"""

from airflow.plugins_manager import AirflowPlugin  # noqa: TID253  # Airflow's own folder
from gridline_airflow.links import BatchPage, batch_tab
from gridline_airflow.listener import Preload


class GridlinePlugin(AirflowPlugin):
    """What Gridline adds to Airflow: a tab on each run, a link on its tasks, quick starts of tasks."""

    name = "gridline"
    listeners = [Preload()]  # noqa: RUF012  # Airflow reads these three from the class
    operator_extra_links = [BatchPage()]  # noqa: RUF012
    external_views = [batch_tab()]  # noqa: RUF012
