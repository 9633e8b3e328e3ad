"""The embedded server's process: who runs it, and from which files."""

import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from gridline.operate import postgres
from gridline.settings import Settings


def test_root_starts_the_copy_that_the_system_user_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started by root, the server is the copy in the state folder: the clone may lie where no other user can look."""
    who = {"uid": 0}
    started: list[str] = []
    monkeypatch.setattr(postgres, "settings", lambda: Settings(state_dir=tmp_path))
    monkeypatch.setattr(postgres.Postgres, "initialise", lambda _: None)
    monkeypatch.setattr(postgres, "_die_with_parent", lambda: None)
    monkeypatch.setattr(pwd, "getpwnam", lambda _: SimpleNamespace(pw_uid=1, pw_gid=1))
    monkeypatch.setattr(os, "geteuid", lambda: who["uid"])
    for name in ("initgroups", "setgid", "chdir"):
        monkeypatch.setattr(os, name, lambda *_: None)
    monkeypatch.setattr(os, "setuid", lambda uid: who.update(uid=uid))
    monkeypatch.setattr(os, "execv", lambda program, _: started.append(program))
    postgres.main()
    assert who["uid"] == 1
    assert Path(started[0]).is_relative_to(tmp_path)
