"""``python -m dashboard``: serves the pages on the port of ``GRIDLINE_DASHBOARD_PORT``, until SIGTERM."""

from dashboard.asgi import app
from gridline.settings import settings

if __name__ == "__main__":
    app.run(config={"server.port": settings().dashboard_port, "server.address": settings().dashboard_host})
