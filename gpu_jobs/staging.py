"""Copies adapters from the object store into folders on this host, as an engine loads them. A folder that exists is whole."""

import json
import os
import shutil
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from gpu_jobs.whole_folders import appearing
from gridline.clock import SystemClock
from gridline.lines.adapters import Adapter
from gridline.storage import Store

KEEP = timedelta(days=7)
"""A folder that nobody loaded from for longer is removed when another one is made."""


class StagedWrong(Exception):
    """Raised when the object is not the one that was imported."""


def stage(store: Store, adapter: Adapter, root: Path) -> Path:
    """The adapter's folder, made unless it stands.

    Raises:
        StagedWrong: the object's bytes are not those that were imported.
        ObjectMissing: it is gone.
        StoreUnavailable: the store is away.
    """
    content = json.dumps([adapter.sha256, dict(adapter.config)], sort_keys=True)
    target = root / sha256(content.encode()).hexdigest()
    if target.is_dir():
        os.utime(target)
        return target
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    _tidy(root)
    with appearing(target) as folder:
        digest = sha256()
        with (folder / "adapter_model.safetensors").open("wb") as file:
            for chunk in store.stream(adapter.key):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != adapter.sha256:
            raise StagedWrong(f"{adapter.key} has sha256 {digest.hexdigest()}, imported was {adapter.sha256}")
        (folder / "adapter_config.json").write_text(json.dumps(dict(adapter.config)))
    return target


def _tidy(root: Path) -> None:
    """Remove what was not used for long, and what a killed keeper left half made."""
    before = (SystemClock().now() - KEEP).timestamp()
    for folder in root.iterdir():
        if folder.stat().st_mtime < before:
            shutil.rmtree(folder, ignore_errors=True)
