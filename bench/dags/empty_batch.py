"""The yardstick of `make bench-overhead`: the DAG `batch` with empty bodies.

Six tasks, one mapped, the last a teardown. The bench runs both, so what is left is Gridline's own. Its folder is
added to Airflow only for the bench.
"""

from airflow.sdk import dag, task, teardown  # noqa: TID253  # a DAG is Airflow's


@dag(dag_id="empty_batch", doc_md=__doc__, schedule=None, max_active_runs=64, is_paused_upon_creation=False)
def empty_batch() -> None:
    """The same six tasks and edges as `batch`."""

    @task
    def validate() -> list[int]:
        return [0]

    @task
    def hold_credits() -> None:
        return None

    @task
    def wait_for_capacity() -> None:
        return None

    @task(pool="gpu_jobs")
    def infer_partition(partition: int) -> None:
        del partition

    @task
    def collate() -> None:
        return None

    @teardown
    @task
    def settle() -> None:
        return None

    partitions = validate()
    infer = infer_partition.expand(partition=partitions)
    partitions >> hold_credits() >> wait_for_capacity() >> infer >> collate() >> settle()


empty_batch()
