from collections.abc import Iterator

import httpx
import pytest

from gridline.operate import postgres
from tests.conftest import free_port
from tests.gridline.capacity.yard import Yard
from tests.plugins.real_airflow import add_user, api_server, browser, csrf_token

# Airflow's migrations and imports are most of it: half a minute on an idle machine, more on a busy one.
pytestmark = [pytest.mark.airflow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def airflow(
    server: postgres.Postgres, database_name: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """Airflow's web server with a user of each role."""
    with api_server(server, database_name, tmp_path_factory.mktemp("airflow"), free_port()) as admin:
        add_user(admin, "olga", "Gridline operator")
        add_user(admin, "vera", "Gridline viewer")
        add_user(admin, "noah", "Public")
        yield admin


def test_the_pages_work_in_the_real_airflow(airflow: httpx.Client, yard: Yard) -> None:
    """Signed in through Airflow's own page, an operator sees and acts, a viewer only sees, others do neither."""
    account = yard.account("acme")
    batch = yard.batch(account)
    page, grant = f"/pluginsv2/gridline/accounts/{account}", f"/pluginsv2/gridline/accounts/{account}/grant"
    typed = {"amount": "2.5", "why": "a gift", "key": "k1"}
    with browser(airflow, "olga") as olga:
        for address in ("", "accounts", "batches", f"batches/{batch}", "audit"):
            answer = olga.get(f"/pluginsv2/gridline/{address}")
            assert answer.status_code == 200, answer.text
        html = olga.get(page).text
        assert "999.999999000 credits" in html
        assert olga.post(grant, data=typed).status_code == 400  # without its CSRF token
        token = {"csrf_token": csrf_token(html)}
        done = olga.post(grant, data=typed | token)
        assert (done.status_code, done.headers["Location"]) == (302, page)
        shown = olga.get(page).text
        assert "Granted 2.500000000 credits." in shown
        assert "operator:olga" in shown
        plugins = olga.get("/api/v2/plugins").json()["plugins"]
        assert {"Batch", "Gridline", "Operator"} <= {
            way["name"] for one in plugins for way in one["external_views"]
        }
        assert "Dags" in olga.get("/ui/auth/menus").json()["authorized_menu_items"]
        # Runs are started and marked through the pages, or by whoever has more than this role.
        assert olga.post("/api/v2/dags/batch/dagRuns", json={"logical_date": None}).status_code == 403
    with browser(airflow, "vera", forges=True) as vera:
        html = vera.get(page).text
        assert "operator:olga" in html
        assert 'method="post"' not in html
        refused = vera.post(grant, data=typed | {"key": "k2"})
        assert refused.status_code == 403
        assert "does not have &#39;can edit&#39;" in refused.text
    with browser(airflow, "noah") as noah:
        assert noah.get(page).status_code == 403
    with httpx.Client(base_url=airflow.base_url) as nobody:
        answer = nobody.get(page)
        assert answer.status_code == 302
        assert "/auth/login/?next=" in answer.headers["Location"]
