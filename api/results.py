"""What a batch has done so far, as JSONL, a page at a time: OpenAI shows nothing before the end."""

from collections.abc import Iterator
from typing import BinaryIO

from flask import Blueprint, Response, request

from api import auth, paging, queries, rates
from api.batches import checked_id
from api.reference.operations import Content, operation
from gridline import limits, storage
from gridline.batches import partial
from gridline.db.work import reading
from gridline.errors import RateExceeded

CHUNK_BYTES = 256 * 1024
JSONL = "application/jsonl"

blueprint = queries.strict(auth.guard(Blueprint("results", __name__)))


@blueprint.get("/batches/<batch_id>/results")
@operation(
    "Batches",
    "listBatchResults",
    "Read what is done so far",
    parameters=("results_after", "results_limit"),
    returns={200: Content("ResultLines", JSONL)},
    refuses=("not_found", "results_gone"),
    sends=("Gridline-Next-Cursor", "Gridline-Incomplete", "Cache-Control"),
)
def list_results(batch_id: str) -> Response:
    """Lines that have a result, delivered and failed alike, in the order in which they were done.

    The answer is written to local disk first: an object that is gone by then, or a store that is away, is a
    refusal and never half a page, and a slow reader holds up nothing.
    """
    checked_id(batch_id)
    who = auth.caller()
    lines_max = paging.query_limit(
        default=limits.RESULTS_PAGE_LINES_DEFAULT, most=limits.RESULTS_PAGE_LINES_MAX
    )
    after = paging.query("after")
    with reading() as work:
        standing = partial.standing(work, account_id=who.account_id, batch_id=batch_id)
    page, incomplete = partial.page(storage.store(), standing, after=after, lines_max=lines_max)
    answer = Response(chunks(page.file), content_type=JSONL)
    answer.call_on_close(page.file.close)
    answer.headers["Content-Length"] = str(page.bytes)
    answer.headers["Gridline-Next-Cursor"] = page.cursor.text(batch_id)
    answer.headers["Gridline-Incomplete"] = "true" if incomplete else "false"
    answer.headers["Cache-Control"] = "private, no-store"
    try:
        if request.method != "HEAD":
            rates.admit_download(who.account_id, page.bytes)
    except RateExceeded:
        answer.close()
        raise
    return answer


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """What is left of a file, a part at a time."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
