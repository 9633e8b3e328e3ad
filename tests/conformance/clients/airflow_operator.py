"""Airflow's own OpenAI provider as a customer: its batch operator waits for two batches; prints what it returned.

Knows Airflow and its provider only. The connection comes in AIRFLOW_CONN_OPENAI_DEFAULT, the file ids as arguments.
"""

import asyncio
import json
import sys
from typing import Any

ENDPOINT = "/v1/embeddings"


def waited_for(file_id: str) -> str | None:
    """The batch that the operator made of the file, waited for in its own process."""
    from airflow.providers.openai.operators.openai import OpenAITriggerBatchOperator

    operator = OpenAITriggerBatchOperator(
        task_id="operator", file_id=file_id, endpoint=ENDPOINT, wait_seconds=0.5
    )
    return operator.execute({})


def deferred(file_id: str) -> dict[str, Any]:
    """The batch that the operator made of the file, waited for by its trigger as a triggerer would."""
    from airflow.providers.openai.operators.openai import OpenAITriggerBatchOperator
    from airflow.sdk.exceptions import TaskDeferred

    operator = OpenAITriggerBatchOperator(
        task_id="operator", file_id=file_id, endpoint=ENDPOINT, deferrable=True, poll_interval=0.5, metadata={"by": "airflow"}
    )  # fmt: skip

    async def fired(trigger: Any) -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    try:
        operator.execute({})
    except TaskDeferred as deferral:
        event = asyncio.run(fired(deferral.trigger))
        return {"event": event["status"], "batch": operator.execute_complete({}, event)}
    return {"event": "not deferred"}


if __name__ == "__main__":
    print(json.dumps({"waited": waited_for(sys.argv[1]), "deferred": deferred(sys.argv[2])}))  # noqa: T201  # its answer
