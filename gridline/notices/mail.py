"""Mails over SMTP. What customers wrote stands in the body alone, never in a header."""

import smtplib
import ssl
from email.message import EmailMessage
from email.policy import SMTP
from urllib.parse import SplitResult, unquote, urlsplit

from gridline.errors import SettingInvalid, Unavailable
from gridline.notices.messages import Letter
from gridline.settings import Settings

SECONDS_MAX = 10
PORTS = {"smtps": 465, "smtp": 587}


def is_set_up(config: Settings) -> bool:
    """Whether there is a server to send with and somebody to send to."""
    return bool(config.smtp_url and config.operator_email)


def reaches_users(config: Settings) -> bool:
    """Whether there is a server to send with and a name to send as."""
    return bool(config.smtp_url and (config.smtp_from or config.operator_email))


def compose(letter: Letter, config: Settings) -> EmailMessage:
    """The mail of a message. Sent twice it has one Message-ID, so that mail programs show it once."""
    mail = EmailMessage(policy=SMTP)
    mail["Subject"] = f"Gridline: message {letter.id} from account {letter.account_id}"
    mail["From"] = config.smtp_from or config.operator_email
    mail["To"] = config.operator_email
    mail["Date"] = letter.created_at
    mail["Message-ID"] = f"<{letter.id}@gridline>"
    about = [
        f"account: {' '.join(letter.account_name.split())} ({letter.account_id})",
        f"written: {letter.created_at:%Y-%m-%d %H:%M} UTC",
    ]
    if letter.batch_id is not None:
        about.append(f"batch: {letter.batch_id}, {config.batch_page(letter.batch_id)}")
    mail.set_content("\n".join([*about, "", letter.text, ""]))
    return mail


def send(mail: EmailMessage, config: Settings) -> None:
    """Hand a mail to the server; it has taken it when this returns.

    Raises:
        SettingInvalid: GRIDLINE_SMTP_URL cannot be used.
        Unavailable: the server is away or refused; its words are left out, since they may repeat the mail's.
    """
    parts = _split(config.smtp_url)
    try:
        with _connected(parts) as server:
            if parts.username:
                server.login(unquote(parts.username), unquote(parts.password or ""))
            server.send_message(mail)
    except (smtplib.SMTPException, OSError) as error:
        raise Unavailable(
            f"The mail server {parts.hostname} did not take a mail ({type(error).__name__}). It is tried again; "
            "check GRIDLINE_SMTP_URL and the server's log."
        ) from error


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise SettingInvalid(
            "GRIDLINE_SMTP_URL must be like smtp://user:password@host:587 or smtps://user:password@host:465."
        )
    return parts


def _connected(parts: SplitResult) -> smtplib.SMTP:
    """A session with the server: encrypted for smtps, and for smtp whenever a password will cross it."""
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    name = "[127.0.0.1]"
    if parts.scheme == "smtps":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(host, port, local_hostname=name, timeout=SECONDS_MAX, context=context)
    server = smtplib.SMTP(host, port, local_hostname=name, timeout=SECONDS_MAX)
    if parts.username:
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server
