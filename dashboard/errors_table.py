"""What validation found, as a table with line numbers and as a CSV that no spreadsheet runs."""

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gridline.client import LineError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("Line", "Code", "Parameter", "Message")
# A cell that begins like this is a formula to a spreadsheet.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def frame(errors: Sequence[LineError]) -> "pd.DataFrame":
    """The errors as a table; a problem of the whole file has no line."""
    import pandas as pd

    rows = [(error.line, error.code, error.param or "", error.message) for error in errors]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.astype({"Line": "Int64"})


def of_lines(lines: Sequence[tuple[str, str]]) -> "pd.DataFrame":
    """Failed lines: the customer's own id and what was said."""
    import pandas as pd

    return pd.DataFrame(list(lines), columns=["custom_id", "Message"])


def as_csv(errors: Sequence[LineError]) -> bytes:
    """The errors as CSV, in UTF-8; cells that would be formulas begin with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for error in errors:
        writer.writerow(
            [error.line, safe_cell(error.code), safe_cell(error.param or ""), safe_cell(error.message)]
        )
    return out.getvalue().encode()


def safe_cell(text: str) -> str:
    """The text, never a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
