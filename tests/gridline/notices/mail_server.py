"""A real SMTP server on a free port, as small as it can be: it remembers what it took, or refuses as the test says."""

import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread


@dataclass
class MailServer:
    """``refuse`` is the answer to DATA's end; empty: the mail is taken."""

    port: int = 0
    refuse: str = ""
    senders: list[str] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    mails: list[bytes] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)


class Session(socketserver.StreamRequestHandler):
    """One client's connection."""

    state: MailServer

    def say(self, line: str) -> None:
        """Answer."""
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self) -> None:
        """Until the client has said QUIT or is gone."""
        self.say("220 test")
        heard = {"MAIL": self.state.senders, "RCPT": self.state.recipients, "AUTH": self.state.logins}
        while line := self.rfile.readline().decode().strip():
            verb = line[:4].upper()
            if verb == "QUIT":
                self.say("221 bye")
                return
            if verb == "DATA":
                self.take()
                continue
            heard.get(verb, []).append(line)
            if verb == "EHLO":
                # A login in the open is offered, encryption is not.
                self.say("250-test")
                self.say("250 AUTH PLAIN")
                continue
            self.say("235 ok" if verb == "AUTH" else "250 ok")

    def take(self) -> None:
        """Read a mail to its end, and keep it unless it is refused."""
        self.say("354 go on")
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b"."))
        if not self.state.refuse:
            self.state.mails.append(b"".join(lines))
        self.say(self.state.refuse or "250 taken")


@contextmanager
def serving() -> Iterator[MailServer]:
    """A server while the test runs."""
    state = MailServer()
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), type("Ours", (Session,), {"state": state}))
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
