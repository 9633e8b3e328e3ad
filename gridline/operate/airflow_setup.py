"""Makes Airflow's database ready in one process: tables, users and their roles, the pool. Run again, it changes nothing.

Runs with Airflow's environment: ``python -m gridline.operate.airflow_setup``. One process because each ``airflow``
command costs five to nine seconds of imports.
"""

import logging
from typing import Any

from gridline.operate.secrets import AIRFLOW_ADMIN_PASSWORD, AIRFLOW_ADMIN_USER
from gridline.settings import Settings, settings

log = logging.getLogger(__name__)

ROLE = "Gridline keeper"
OPERATOR_ROLE = "Gridline operator"
VIEWER_ROLE = "Gridline viewer"
POOL = "gpu_jobs"
SLOTS_KEPT_FREE = 2
"""Task slots that GPU jobs never take, so that ``settle`` and ``collate`` always find room."""

# Start, read, clear and annotate runs of our DAGs; no deleting, no other DAG, no user, pool, variable or connection.
# Clearing is "edit task instances"; every one of them also needs its DAG.
# "Website" Airflow gives to every role at each start.
ENTITY_RIGHTS = (
    ("can_read", "Website"),
    ("can_create", "DAG Runs"),
    ("can_read", "DAG Runs"),
    ("can_edit", "DAG Runs"),
    ("can_read", "Task Instances"),
    ("can_edit", "Task Instances"),
)
DAG_RIGHTS = ("can_read", "can_edit")
DAGS = ("batch", "empty_batch")
"""``empty_batch`` exists only while the overhead bench runs."""

KEEPER_RIGHTS = (*ENTITY_RIGHTS, *((right, f"DAG:{dag}") for dag in DAGS for right in DAG_RIGHTS))

# What the UI needs to show runs with their tasks and logs, the menu's entry and the pages behind it; who looks may
# change a password of their own. Logs hold ids and counts, never a prompt or a result; XComs are not needed.
VIEWER_RIGHTS = (
    ("can_read", "Website"),
    ("can_read", "DAGs"),
    ("can_read", "DAG Runs"),
    ("can_read", "DAG Versions"),
    ("can_read", "Task Instances"),
    ("can_read", "Task Logs"),
    ("can_read", "Plugins"),
    ("menu_access", "DAGs"),
    ("menu_access", "DAG Runs"),
    ("menu_access", "Task Instances"),
    ("can_read", "My Password"),
    ("can_edit", "My Password"),
    ("can_read", "My Profile"),
    ("can_read", "Gridline"),
)
# Acting goes through the pages, which write it into the audit: no right to start, clear or mark runs.
OPERATOR_RIGHTS = (*VIEWER_RIGHTS, ("can_edit", "Gridline"))


def set_up(config: Settings) -> None:
    """Migrate the tables, then write users, roles and the pool as the settings want them."""
    _migrate()
    _make_pool(config)
    _make_users(config)


def _migrate() -> None:
    from airflow.providers_manager import ProvidersManager
    from airflow.utils import db

    # FAB's own tables are made by a manager that is named in its provider's configuration.
    ProvidersManager().initialize_providers_configuration()  # type: ignore[no-untyped-call]
    db.upgradedb()


def _make_pool(config: Settings) -> None:
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    with create_session() as session:
        Pool.create_or_update_pool(
            POOL,
            slots=max(1, config.airflow_parallelism - SLOTS_KEPT_FREE),
            description="GPU jobs of this machine; two task slots stay free for settling.",
            include_deferred=False,
            session=session,
        )


def _make_users(config: Settings) -> None:
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder

    with get_application_builder() as builder:
        security = builder.sm
        security.sync_roles()
        _make_role(security, ROLE, KEEPER_RIGHTS)
        # Nobody gets these two by himself: whoever administers Airflow gives them.
        _make_role(security, OPERATOR_ROLE, OPERATOR_RIGHTS)
        _make_role(security, VIEWER_ROLE, VIEWER_RIGHTS)
        _make_user(security, config.airflow_user, config.secret("airflow_password"), ROLE)
        _make_user(security, AIRFLOW_ADMIN_USER, config.secret(AIRFLOW_ADMIN_PASSWORD), "Admin")


def _make_role(security: Any, name: str, wanted: tuple[tuple[str, str], ...]) -> None:
    role = security.add_role(name)
    for right, on in wanted:
        security.add_permission_to_role(role, security.create_permission(right, on))
    for held in list(role.permissions):
        if (held.action.name, held.resource.name) not in wanted:
            security.remove_permission_from_role(role, held)


def _make_user(security: Any, name: str, password: str, role: str) -> None:
    """A user with this password and only this role; hashing costs 0.1 s, so a right password is left alone."""
    from werkzeug.security import check_password_hash

    wanted = security.find_role(role)
    user = security.find_user(username=name)
    if user is None:
        security.add_user(name, name, "Gridline", f"{name}@gridline.invalid", wanted, password=password)
        log.info("Made the Airflow user %s with the role %s.", name, role)
        return
    if user.roles != [wanted]:
        user.roles = [wanted]
        security.update_user(user)
    if not check_password_hash(user.password, password):
        security.reset_password(user.id, password)


if __name__ == "__main__":
    set_up(settings())
