"""What Airflow's Celery workers are told: to import what tasks need before they fork. Knows no batch.

Celery's own setting ``imports`` does what the listener does for LocalExecutor's workers.
"""

from airflow.providers.celery.executors.default_celery import DEFAULT_CELERY_CONFIG  # noqa: TID253  # an Airflow room

from gridline_airflow.listener import AIRFLOW_MODULES, OUR_MODULES

CELERY = {**DEFAULT_CELERY_CONFIG, "imports": (*AIRFLOW_MODULES, *OUR_MODULES)}
