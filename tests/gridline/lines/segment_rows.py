"""Result rows as a GPU job would write them."""

import json

from gridline.lines.segments import ResultRow


def row(line: int, *, code: str | None = None, text: str = "ok", custom_id: str | None = None) -> ResultRow:
    """One row: delivered with 3 and 2 tokens, or refused with this code."""
    body = {"text": text} if code is None else {"error": {"message": text, "code": code}}
    return ResultRow(
        line=line,
        custom_id=f"id-{line}" if custom_id is None else custom_id,
        status_code=200 if code is None else 400,
        request_id=f"req-{line}",
        body=json.dumps(body),
        code=code,
        model="tiny-chat",
        input_tokens=3 if code is None else 0,
        output_tokens=2 if code is None else 0,
    )
