"""The object store and the layout of every object in it."""

from functools import cache

from gridline.settings import settings
from gridline.storage.errors import KeyRefused, ObjectMissing, StoreUnavailable
from gridline.storage.objects import Store

__all__ = ["KeyRefused", "ObjectMissing", "Store", "StoreUnavailable", "store"]


@cache
def store() -> Store:
    """The process's object store, from the settings."""
    return Store(settings().objects_url)
