"""Folders that appear under their name only when they are whole, whoever else makes the same one meanwhile."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A new folder to fill, which becomes ``target`` at the end; after an error nothing is left of it."""
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=target.parent) as incoming:
        folder = Path(incoming) / target.name
        folder.mkdir()
        yield folder
        try:
            folder.rename(target)
        except OSError:
            # Somebody else made it meanwhile: theirs is as good.
            if not target.is_dir():
                raise
