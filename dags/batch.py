"""A customer's batch is one run of this DAG, whatever it waited for, and **the run's id is the batch's id**.

`validate >> hold_credits >> wait_for_capacity >> infer_partition[...] >> collate >> settle`

| task | does |
|---|---|
| `validate` | reads the input file once: every bad line, every token ceiling, the partitions |
| `hold_credits` | sets aside the most the batch can cost, at rates copied then |
| `wait_for_capacity` | goes on when the batch has a GPU grant; waits here on a shared stream, or parks the batch |
| `infer_partition` | one mapped task a partition: claims the grant, runs the GPU job, gives the lease back |
| `collate` | writes the result files in input order |
| `settle` | charges, releases and ends the batch; the teardown, so it runs whatever happened before |

**Skipped tasks and a green run** mean that the batch is *parked* (it waits for credit or a GPU outside Airflow; the
keeper resumes this run by clearing it) or that it ended early. The run's note says which and links to the batch's
page; this run's own state is never the batch's state.

**What an operator may do here**: clear any task or the whole run at any time (every task may run twice and then
changes nothing), mark the run failed or delete it (the batch then ends with what is done: lines that ran are
delivered and charged, the others are not). To cancel a batch for its customer, use the API.
"""

from datetime import timedelta

from airflow.sdk import dag, task, teardown  # noqa: TID253  # a DAG is Airflow's
from airflow.sdk.exceptions import AirflowSkipException  # noqa: TID253
from gridline_airflow.operators import InferPartition
from gridline_airflow.sensors import WaitForCapacity

from gridline.limits import PARTITIONS_PER_BATCH_MAX

# A task fails when a dependency is away (database, store): it tries again for about ten minutes, quickly at first.
RETRY = {
    "retries": 12,
    "retry_delay": timedelta(seconds=2),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(seconds=60),
}


@dag(
    dag_id="batch",
    doc_md=__doc__,
    schedule=None,
    # Each running run costs the scheduler about 12 ms a loop, also while it only waits: the others queue, for free.
    max_active_runs=64,
    # Per run: all partitions at once, if there are GPUs for them; the pool gpu_jobs bounds what this machine runs.
    max_active_tasks=PARTITIONS_PER_BATCH_MAX,
    default_args=RETRY,
    is_paused_upon_creation=False,
    tags=["gridline"],
)
def batch() -> None:
    """The six tasks of a batch; each body calls the domain, which owns every rule."""

    @task
    def validate(run_id: str | None = None) -> list[int]:
        from gridline.batches import validating

        partitions = validating.validate(str(run_id))
        if not partitions:
            raise AirflowSkipException("Nothing to run: the batch has ended, or its file is not valid.")
        return partitions

    @task
    def hold_credits(run_id: str | None = None) -> None:
        from gridline.batches import holding

        answer = holding.hold_credits(str(run_id))
        if answer != "held":
            raise AirflowSkipException(f"The batch is {answer}: nothing more to do in this run for now.")

    @task
    def collate(run_id: str | None = None) -> str:
        from gridline.batches import finishing

        return finishing.collate(str(run_id))

    # The only teardown, and no setup: it runs after failed, skipped and killed tasks alike. Its failure does not hide
    # theirs (on_failure_fail_dagrun stays False). A run that left something undone is the keeper's to end.
    @teardown
    @task
    def settle(run_id: str | None = None) -> str:
        from gridline.batches import finishing

        return finishing.settle(str(run_id))

    partitions = validate()
    infer_partition = InferPartition.partial(
        task_id="infer_partition",
        pool="gpu_jobs",
        queue="gpu",
        map_index_template="partition {{ task.partition }}",
    ).expand(partition=partitions)

    partitions >> hold_credits() >> WaitForCapacity(task_id="wait_for_capacity") >> infer_partition
    infer_partition >> collate() >> settle()


batch()
