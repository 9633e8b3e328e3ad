"""The dashboard's server: Streamlit's pages, and our own routes for signing in and for downloads.

Start it from the repository's root; settings come from ``GRIDLINE_*`` (``dashboard_port``, ``api_url``,
``api_port``, ``dashboard_url``, ``airflow_url``)::

    .venv/bin/python -m dashboard

which is the same as ``python -m streamlit run dashboard/asgi.py --server.port 8501 --server.address
127.0.0.1``. It answers ``GET /_stcore/health`` with 200 when it is up and ends on SIGTERM. One process:
signed-in sessions live in its memory, so a restart asks everybody to sign in again.
"""

from pathlib import Path

from starlette.middleware import Middleware
from streamlit.starlette import App

from dashboard import identity, transfers
from dashboard.headers import SafeHeaders
from dashboard.routes import ROUTES

identity.checked_host()  # settings that cannot be used are said at the start, not to the first visitor

app = App(
    Path(__file__).parent / "main.py",
    routes=[*transfers.ROUTES, *ROUTES],
    middleware=[Middleware(SafeHeaders)],
)
