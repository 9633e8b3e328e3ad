"""Writes the default dialect's document to a file (``make openapi``): docs/openapi.json is checked in and compared."""

import sys
from pathlib import Path

from api.app import create_app
from api.reference.document import build, text_of
from gridline.profiles.profile import load
from gridline.settings import Settings


def main() -> int:
    """Write the file that the command line names."""
    Path(sys.argv[1]).write_text(
        text_of(build(create_app(load(Settings().profile), config=Settings()))), encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
