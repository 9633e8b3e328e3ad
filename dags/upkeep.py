"""The platform's upkeep, for the operator's eyes and hand. No batch depends on these DAGs."""

from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task  # noqa: TID253  # a DAG is Airflow's
from airflow.sdk.exceptions import AirflowFailException  # noqa: TID253

# A dependency that is away is tried again; a promise that does not hold is not made good by asking twice.
RETRY = {"retries": 3, "retry_delay": timedelta(minutes=1)}
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


@dag(
    dag_id="prove",
    schedule="@hourly",
    start_date=SINCE,
    catchup=False,
    max_active_runs=1,
    default_args=RETRY,
    is_paused_upon_creation=False,
    tags=["gridline", "upkeep"],
)
def prove() -> None:
    """Proves every hour that books, batches, files and leases hold what they promise.

    **Red means that a promise is broken**: the task's log names each by ids and amounts. What to do then is in
    `docs/operations.md`, "The proof". The outcome is kept and shown as metrics. To prove again after a repair,
    trigger this DAG; to compute every charge again from its file, run `gridline books --files`.
    """

    @task
    def prove_promises() -> str:
        from gridline.proof import platform

        broken = platform.prove_and_record()
        if broken:
            raise AirflowFailException(f"{len(broken)} promises do not hold:\n" + "\n".join(broken))
        return "Every promise holds."

    prove_promises()


@dag(
    dag_id="reconcile",
    schedule=None,
    max_active_runs=1,
    default_args=RETRY,
    is_paused_upon_creation=False,
    tags=["gridline", "upkeep"],
)
def reconcile() -> None:
    """Ends or restarts batches whose run is over or gone. The keeper does this every 30 s; trigger it to see it done."""

    @task
    def reconcile_batches() -> str:
        from gridline.keeper import by_hand

        return f"Batches that were ended or started again: {by_hand.reconcile()}"

    reconcile_batches()


@dag(
    dag_id="sweep",
    schedule=None,
    max_active_runs=1,
    default_args=RETRY,
    is_paused_upon_creation=False,
    tags=["gridline", "upkeep"],
)
def sweep() -> None:
    """Deletes what is due to be deleted. The keeper does this every minute; trigger it to see it done."""

    @task
    def sweep_everything() -> dict[str, int]:
        from gridline.keeper import by_hand

        return by_hand.sweep()

    sweep_everything()


prove()
reconcile()
sweep()
