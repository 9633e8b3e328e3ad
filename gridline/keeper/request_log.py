"""Keeps the request log: ended batches into it, old rows out of it. Where the dialect has none, nothing is done."""

from gridline.batches import logging_requests
from gridline.db.work import unit_of_work
from gridline.keeper.duties import each
from gridline.profiles.profile import current
from gridline.usage import request_log

PASS_MAX = 100


def log_requests() -> int:
    """Log batches that ended, some a step, and forget what is older than the dialect keeps; how many were logged."""
    days = current().request_log_days
    if not days:
        return 0
    with unit_of_work() as work:
        due = logging_requests.due(work, most=PASS_MAX)
    logged = each("request_log", due, logging_requests.log_batch)
    for _ in range(PASS_MAX):  # as many as a step may add, or the log would grow for ever
        with unit_of_work() as work:
            if not request_log.forget(work, days=days):
                break
    return logged
