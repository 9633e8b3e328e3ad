"""Tries whether a store keeps the one promise that everything is built on: of many writers, one creates an object.

S3 and most stores that speak its language keep it; some took the condition and let every writer win.
"""

import secrets
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from gridline.errors import SettingInvalid
from gridline.storage.objects import Store

WRITERS = 8
ROUNDS = 3


def require_create_once(store: Store) -> None:
    """Let writers race for an object, a few times, and take the object away again.

    Raises:
        SettingInvalid: more or fewer than one of them created it, or it holds another's bytes.
    """
    for _ in range(ROUNDS):
        key = f"trial/{secrets.token_hex(12)}"
        try:
            winners = _race(store, key)
            held = store.read_or_none(key)
        finally:
            store.delete(key)
        if len(winners) != 1 or held != winners[0]:
            raise SettingInvalid(
                f"The object store does not keep create-once writes (If-None-Match: *): {len(winners)} of {WRITERS} "
                "writers created the same object. Results could be overwritten. Choose a store that keeps them for "
                "GRIDLINE_STORE_URL, or a newer version of this one."
            )


def _race(store: Store, key: str) -> list[bytes]:
    """The bytes of every writer that was told that it made the object."""
    barrier = Barrier(WRITERS)

    def write(number: int) -> bytes | None:
        data = b"%d" % number
        barrier.wait()
        return data if store.put_once(key, data) else None

    with ThreadPoolExecutor(WRITERS) as pool:
        return [one for one in pool.map(write, range(WRITERS)) if one is not None]
