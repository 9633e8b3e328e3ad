"""An account's credits as its customer reads them: entries, statement, usage. What OpenAI lacks."""

import tempfile
from typing import Any

from flask import Blueprint, Response, jsonify, request

from api import auth, paging, queries, rates
from api.reference.operations import Content, operation
from api.results import chunks
from gridline import limits
from gridline.clock import Days
from gridline.db.work import reading
from gridline.ledger import entries, statement
from gridline.usage import reading as usage

CSV = "text/csv"

blueprint = queries.strict(auth.guard(Blueprint("statements", __name__)))


@blueprint.get("/entries")
@operation(
    "Credits",
    "listEntries",
    "List entries",
    parameters=("entries_after", "entries_limit"),
    returns="EntryList",
    refuses=("not_found",),
)
def list_entries() -> dict[str, Any]:
    """One page of everything that moved the account's credits, newest first."""
    limit = paging.query_limit(default=limits.ENTRIES_PAGE_DEFAULT, most=limits.ENTRIES_PAGE_MAX)
    after = paging.query("after")
    with reading() as work:
        found, has_more = entries.page(work, account_id=auth.caller().account_id, after=after, limit=limit)
    return paging.page_object([entries.entry_object(one) for one in found], has_more=has_more)


@blueprint.get("/statement")
@operation(
    "Credits",
    "readStatement",
    "Read a statement",
    parameters=("from_day", "to_day", "statement_format"),
    returns="Statement",
    also=Content("StatementSheet", CSV),
)
def read_statement() -> Response:
    """Opening and closing balance of some UTC days, with every entry between them: in JSON, or as CSV for a spreadsheet."""
    form = paging.query_one_of("format", ("json", "csv"))
    account_id = auth.caller().account_id
    with reading() as work:
        days = paging.query_days(work.now)
        if form != "csv":
            return jsonify(statement.statement_object(work, account_id, days))
        # Written to local disk first: a slow reader holds up no connection, and gets the whole or a refusal.
        file = tempfile.TemporaryFile(prefix="gridline-statement-")  # noqa: SIM115 - closed with the answer
        try:
            for line in statement.csv_lines(work, account_id, days):
                file.write(line)
            size = file.tell()
            file.seek(0)
            if request.method != "HEAD":
                rates.admit_download(account_id, size)
        except BaseException:
            file.close()
            raise
    answer = Response(chunks(file), content_type=f"{CSV}; charset=utf-8")
    answer.call_on_close(file.close)
    answer.headers["Content-Length"] = str(size)
    answer.headers["Content-Disposition"] = f'attachment; filename="{_name(days)}"'
    answer.headers["Cache-Control"] = "private, no-store"
    return answer


@blueprint.get("/usage")
@operation(
    "Credits",
    "readUsage",
    "Read the usage",
    parameters=("from_day", "to_day"),
    returns="UsageList",
)
def read_usage() -> dict[str, Any]:
    """What was delivered and charged on some UTC days, by day of settlement and by model."""
    with reading() as work:
        days = paging.query_days(work.now)
        data = usage.by_day_and_model(work, auth.caller().account_id, days)
    return {"object": "list", "data": data, "has_more": False}


def _name(days: Days) -> str:
    return f"gridline-statement-{days.first}-{days.last}.csv"
