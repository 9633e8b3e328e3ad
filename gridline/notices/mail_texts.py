"""What mails to users say. Nothing that a customer wrote is in a header, and never a prompt or an answer anywhere."""

from collections.abc import Mapping
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from gridline.notices.owed_mails import Owed
from gridline.settings import Settings

Json = Mapping[str, Any]

ENDED = {
    "completed": "has completed. Its results are there.",
    "failed": "has failed. No line ran and nothing was charged.",
    "expired": "has expired: its window is over. Lines that were done are delivered and charged, the others are not.",
    "cancelled": "was cancelled. Lines that were done are delivered and charged, the others are not.",
}
WHY = "You get this because you asked for it. To stop it: {dashboard}/account"


def code(owed: Owed, config: Settings) -> EmailMessage:
    """The mail that brings a code."""
    text = (
        f"Your code is {owed.code}. It works for 15 minutes, on the page from which you asked for it.\n\n"
        f"It turns on mails about ended batches of your account at {config.public_dashboard_url}.\n"
        "If you did not ask for it, there is nothing to do: without the code nothing more is sent here.\n"
    )
    return _mail(owed, config, "Gridline: your code", text)


def ended(owed: Owed, batch: Json, config: Settings) -> EmailMessage:
    """The mail about a batch that has ended; ``batch`` is the API's object with its explanation."""
    counts, explanation = batch["request_counts"], batch["explanation"]
    lines = [f"Your batch {owed.subject_id} {ENDED[batch['status']]}", ""]
    if counts["total"]:
        lines.append(
            f"lines: {counts['completed']} done, {counts['failed']} failed, of {counts['total']} in the file"
        )
    lines.append(f"charged: {explanation['cost'] or '0.000000000'} credits")
    lines += [
        f"page: {config.batch_page(owed.subject_id)}",
        "",
        WHY.format(dashboard=config.public_dashboard_url),
    ]
    return _mail(owed, config, f"Gridline: {owed.subject_id} {batch['status']}", "\n".join(lines) + "\n")


def _mail(owed: Owed, config: Settings, subject: str, text: str) -> EmailMessage:
    """Sent twice it has one Message-ID, so that mail programs show it once."""
    mail = EmailMessage(policy=SMTP)
    mail["Subject"] = subject
    mail["From"] = config.smtp_from or config.operator_email
    mail["To"] = owed.email
    mail["Date"] = owed.created_at
    mail["Message-ID"] = f"<{owed.event_id}@gridline>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text)
    return mail
