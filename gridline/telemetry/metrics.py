"""Every metric: its name, help text and labels, as prometheus-client objects in base units. Counts nothing itself.

The API serves its own figures at ``/metrics`` (``render``), the keeper the platform's at
``GRIDLINE_METRICS_PORT`` (``serve``). Labels never hold an account, a batch id or anything a customer wrote.
"""

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
    start_http_server,
)

REGISTRY = CollectorRegistry()
"""Ours alone: libraries that register with prometheus-client's default registry stay out of the page."""

ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

# The API.
HTTP_REQUESTS = Counter(
    "gridline_http_requests_total",
    "Requests answered by the API. route is the pattern, never the address.",
    ["method", "route", "status"],
    registry=REGISTRY,
)
HTTP_REQUEST_SECONDS = Histogram(
    "gridline_http_request_seconds",
    "Seconds from the request's head to its answer's head.",
    ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
    registry=REGISTRY,
)
UPLOADED_BYTES = Counter(
    "gridline_uploaded_bytes_total", "Bytes of files received and kept.", registry=REGISTRY
)
BATCHES_CREATED = Counter(
    "gridline_batches_created_total",
    "Batches accepted by this API.",
    ["endpoint", "window"],
    registry=REGISTRY,
)
RATE_REFUSALS = Counter(
    "gridline_rate_refusals_total",
    "Requests refused with 429 rate_limit_exceeded, by kind: requests, bytes, estimates, wrong tokens, sign-ins and -ups.",
    ["kind"],
    registry=REGISTRY,
)
RATE_ERRORS = Counter(
    "gridline_rate_errors_total",
    "Requests let through uncounted because the storage of the rates failed.",
    registry=REGISTRY,
)

# The keeper: the platform as the database knows it.
KEEPER_LEADER = Gauge(
    "gridline_keeper_leader", "1 when this keeper holds the lock, 0 on standby.", registry=REGISTRY
)
KEEPER_STEP_SECONDS = Histogram(
    "gridline_keeper_step_seconds",
    "Seconds that one step of the keeper's loop took.",
    ["step"],
    registry=REGISTRY,
)
KEEPER_STEP_ERRORS = Counter(
    "gridline_keeper_step_errors_total",
    "Steps of the keeper's loop that raised.",
    ["step"],
    registry=REGISTRY,
)
RUN_REQUESTS = Counter(
    "gridline_run_requests_total",
    "Runs that the keeper asked Airflow for. kind: start or resume; result: done or later (asked again).",
    ["kind", "result"],
    registry=REGISTRY,
)
RUN_REQUESTS_DUE = Gauge(
    "gridline_run_requests_due", "Runs that wait to be started or resumed in Airflow.", registry=REGISTRY
)
BATCHES_OPEN = Gauge("gridline_batches_open", "Batches that have not ended.", ["status"], registry=REGISTRY)
BATCHES_WAITING = Gauge(
    "gridline_batches_waiting", "Open batches that wait, by reason code.", ["reason"], registry=REGISTRY
)
OLDEST_WAIT = Gauge(
    "gridline_batches_oldest_wait_seconds",
    "Since when the batch that has waited the longest has its reason code.",
    ["reason"],
    registry=REGISTRY,
)
WITHOUT_ENGINE = Gauge(
    "gridline_batches_without_engine",
    "Open batches with a partition whose last attempts found no healthy engine.",
    registry=REGISTRY,
)
POOL_GPUS = Gauge("gridline_pool_gpus", "Leases that a pool can give at once.", ["pool"], registry=REGISTRY)
LEASES_LIVE = Gauge(
    "gridline_leases_live", "Grants not yet claimed and leases not yet released.", ["pool"], registry=REGISTRY
)
GPU_SECONDS_TODAY = Gauge(
    "gridline_gpu_seconds_today",
    "GPU seconds of the batches that ended on this UTC day, attempts that failed included.",
    ["model"],
    registry=REGISTRY,
)
CREDITS_TODAY = Gauge(
    "gridline_credits_charged_today",
    "Credits charged for the batches that ended on this UTC day, refunds not taken off.",
    ["model"],
    registry=REGISTRY,
)
LEASES_LAPSED = Counter(
    "gridline_leases_lapsed_total",
    "Grants that nobody claimed and leases whose heartbeat stopped in time.",
    registry=REGISTRY,
)
ENGINE_DEATHS = Counter(
    "gridline_engine_deaths_total",
    "Engines that died under a running job, as its progress told. A line may be to blame, or the machine.",
    registry=REGISTRY,
)
BATCHES_FINISHED = Counter(
    "gridline_batches_finished_by_keeper_total",
    "Batches that the keeper ended because no live run did.",
    registry=REGISTRY,
)
SWEPT_OBJECTS = Counter(
    "gridline_swept_objects_total",
    "Objects that retention deleted. kind: files, batches, uploads, orphans or unfinished.",
    ["kind"],
    registry=REGISTRY,
)
WEBHOOK_ATTEMPTS = Counter(
    "gridline_webhook_attempts_total",
    "Attempts to deliver an event to a webhook. result: arrived (2xx) or failed.",
    ["result"],
    registry=REGISTRY,
)
MAILS = Counter(
    "gridline_mails_total",
    "Mails to the operator. result: sent or failed.",
    ["result"],
    registry=REGISTRY,
)
PROOF_BROKEN = Gauge(
    "gridline_proof_broken_promises",
    "Promises that the last hourly proof found broken. Above 0 somebody must look.",
    registry=REGISTRY,
)
PROOF_TIME = Gauge(
    "gridline_proof_timestamp_seconds",
    "Unix time of the last hourly proof; 0 before the first.",
    registry=REGISTRY,
)


def render() -> tuple[bytes, str]:
    """The page of this process's metrics and its content type."""
    return generate_latest(REGISTRY), CONTENT_TYPE_LATEST


def serve(host: str, port: int) -> None:
    """Serve ``/metrics`` from a daemon thread. Port 0 is refused: scrapers need a known one."""
    if port <= 0:
        raise ValueError(f"a metrics port is between 1 and 65535, got {port}")
    start_http_server(port, addr=host, registry=REGISTRY)
