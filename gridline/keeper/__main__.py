"""``python -m gridline.keeper``: wires the duties together and runs until told to stop."""

from gridline.capacity import allocator
from gridline.keeper import orphans, uploads
from gridline.keeper.airflow import Airflow
from gridline.keeper.credit import resume_funded
from gridline.keeper.deadlines import Deadlines
from gridline.keeper.dispatch import dispatch
from gridline.keeper.duties import Duty
from gridline.keeper.figures import measure, measure_gpu_use
from gridline.keeper.forgetting import forget
from gridline.keeper.loop import Keeper
from gridline.keeper.mailing import mail, mail_users
from gridline.keeper.notes import Notes
from gridline.keeper.progress import ProgressFollower
from gridline.keeper.reconcile import reconcile
from gridline.keeper.request_log import log_requests
from gridline.keeper.retention import retain
from gridline.limits import PROGRESS_INTERVAL_SECONDS
from gridline.notices.delivering import deliver
from gridline.settings import Settings, settings
from gridline.telemetry import logs, metrics


def duties(airflow: Airflow) -> list[Duty]:
    """Everything the keeper does, each with its interval (the safety net) and what wakes it sooner."""
    progress, deadlines, notes = ProgressFollower(), Deadlines(), Notes()
    return [
        Duty("dispatch", lambda: dispatch(airflow), 1, frozenset({"runs"})),
        Duty("allocate", allocator.allocate, 2, frozenset({"capacity", "batches"})),
        Duty("progress", progress.follow, PROGRESS_INTERVAL_SECONDS),
        Duty("deadlines", deadlines.enforce, 2, frozenset({"batches", "capacity"})),
        Duty("credit", resume_funded, 30, frozenset({"credits"})),
        Duty("reconcile", lambda: reconcile(airflow), 30),
        Duty("notes", lambda: notes.write(airflow), 5),
        Duty("figures", measure, 10),
        Duty("gpu_use", measure_gpu_use, 60),
        Duty("uploads", uploads.sweep, 60),
        Duty("retention", retain, 60),
        Duty("orphans", orphans.sweep, 3_600),
        Duty("forget", forget, 60),
        Duty("request_log", log_requests, 10, frozenset({"batches"})),
        Duty("webhooks", deliver, 5, frozenset({"webhooks"})),
        Duty("mail", mail, 30, frozenset({"messages"})),
        Duty("mail_users", mail_users, 30, frozenset({"mails"})),
    ]


def main(config: Settings) -> None:
    """Run one keeper with these settings."""
    logs.configure("keeper")
    metrics.serve(config.metrics_host, config.metrics_port)
    airflow = Airflow.of(config)
    keeper = Keeper(config.app_database_url, duties(airflow))
    keeper.stop_on_signals()
    keeper.run()
    airflow.close()


if __name__ == "__main__":
    main(settings())
