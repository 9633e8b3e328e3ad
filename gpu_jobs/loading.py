"""Makes an engine load and unload adapters: staged from the object store, then named to its server."""

from http import HTTPStatus
from http.client import HTTPException

from gpu_jobs.adapters import EngineAdapters, LoadFailed, LoadRefused
from gpu_jobs.engine_process import EngineProcess
from gpu_jobs.logs import Log
from gpu_jobs.staging import StagedWrong, stage
from gridline.lines.adapters import Adapter
from gridline.settings import settings
from gridline.storage import ObjectMissing, StoreUnavailable, store

WHY_CHARS_MAX = 300


def adapters_of(process: EngineProcess, log: Log) -> EngineAdapters:
    """The adapters of an engine that was started to load them."""

    def load(adapter: Adapter) -> None:
        try:
            folder = stage(store(), adapter, settings().state_dir / "adapters")
        except (ObjectMissing, StagedWrong) as error:
            raise LoadRefused(f"its weights are not in the store as they were imported: {error}") from error
        except (StoreUnavailable, OSError) as error:
            raise LoadFailed(f"its weights could not be copied to this host: {error}") from error
        try:
            answered = process.load(adapter.id, folder)
        except (OSError, HTTPException) as error:
            raise LoadFailed(f"the engine did not answer: {error!r}") from error
        _check(*answered)

    def unload(adapter: Adapter) -> None:
        try:
            answered = process.unload(adapter.id)
        except (OSError, HTTPException) as error:
            raise LoadFailed(f"the engine did not answer: {error!r}") from error
        _check(*answered)

    return EngineAdapters(process.model["adapters_by_rank"], load=load, unload=unload, log=log)


def _check(status: int, body: bytes) -> None:
    if status == HTTPStatus.OK:
        return
    why = f"the engine answered {status}: {body[:WHY_CHARS_MAX].decode(errors='replace')}"
    raise LoadFailed(why) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else LoadRefused(why)
