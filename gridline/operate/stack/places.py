"""Where the running stack keeps its files: sockets, pids, marks and logs."""

from gridline.errors import SettingInvalid
from gridline.settings import Settings

SOCKET_PATH_BYTES_MAX = 100
"""A Unix socket's address holds 107 bytes, and the supervisor appends its pid while it binds."""


class Places:
    """The stack's paths under the state folder, all absolute."""

    def __init__(self, config: Settings) -> None:
        self.state = config.state_dir.absolute()
        self.run = self.state / "run"
        self.logs = self.state / "logs"
        self.configuration = self.run / "supervisord.conf"
        self.socket = self.run / "supervisor.sock"
        self.supervisor_pid = self.run / "supervisord.pid"
        self.lock = self.run / "stack.lock"
        self.initialised = self.run / "initialised"
        self.trouble = self.run / "trouble"

    def make(self) -> None:
        """Make the folders. The run folder is the owner's alone: its sockets give orders.

        Raises:
            SettingInvalid: the state folder's path is too long for a Unix socket.
        """
        if len(str(self.socket).encode()) > SOCKET_PATH_BYTES_MAX:
            raise SettingInvalid(
                f"GRIDLINE_STATE_DIR is too long: {self.socket} has {len(str(self.socket))} characters, a Unix "
                f"socket's path at most {SOCKET_PATH_BYTES_MAX}. Choose a shorter folder."
            )
        self.run.mkdir(parents=True, exist_ok=True)
        self.run.chmod(0o700)
        self.logs.mkdir(parents=True, exist_ok=True)
        self.logs.chmod(0o700)
