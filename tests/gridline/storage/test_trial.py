"""What an object store must keep before anything is trusted to it."""

from pathlib import Path

import pytest

from gridline.errors import SettingInvalid
from gridline.storage import Store
from gridline.storage.trial import require_create_once


class Forgetful(Store):
    """A store that takes no notice of the condition, as some did."""

    def put_once(self, key: str, data: bytes) -> bool:
        """Every writer wins."""
        self.replace(key, data)
        return True


class Mistaken(Store):
    """A store that gives one writer the word and another one the object."""

    def put_once(self, key: str, data: bytes) -> bool:
        """The last bytes stay."""
        won = super().put_once(key, data)
        self.replace(key, data) if not won else None
        return won


def test_a_store_that_keeps_the_promise_passes_and_nothing_is_left(tmp_path: Path) -> None:
    """The trial takes away what it wrote."""
    store = Store(tmp_path.as_uri())
    require_create_once(store)
    assert store.list("") == []


@pytest.mark.parametrize("kind", [Forgetful, Mistaken])
def test_a_store_that_lets_many_writers_win_is_refused(tmp_path: Path, kind: type[Store]) -> None:
    """The refusal says what was seen, why it matters and which setting to change; nothing is left."""
    store = kind(tmp_path.as_uri())
    with pytest.raises(SettingInvalid, match=r"create-once writes .* of 8 writers .* GRIDLINE_STORE_URL"):
        require_create_once(store)
    assert store.list("") == []
