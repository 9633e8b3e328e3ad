"""A new batch in three steps: a file, what a batch of it would cost or what is wrong with its lines, create."""

import json
import secrets

import streamlit as st
from markupsafe import Markup

from dashboard import errors_table, estimates, figures, live, markup, visitor, words
from gridline.client import Client, ClientError, FileInfo, Json

WINDOWS = {"24h": "starts first", "72h": "may wait longer, also for credit"}
RECENT = 10
DESCRIPTION_CHARS_MAX = 512
FORM = Markup("""
<form class="gl-form" method="post" action="/files/in" enctype="multipart/form-data">
  <input type="hidden" name="purpose" value="batch">
  <label for="gl-file">JSONL file: one request a line, at most {lines} lines and {size}</label>
  <input id="gl-file" name="file" type="file" accept=".jsonl" required>
  <button type="submit">Upload and check</button>
</form>""")
NAME = Markup('<div class="gl-strong gl-clip">{}</div>')
EXAMPLE = """{"custom_id": "question-1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "MODEL", \
"messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 64}}"""


def main() -> None:
    """Draw the page."""
    st.title("New batch", anchor=False)
    _tell_refusal()
    file_id = st.query_params.get("file", "")
    if not file_id:
        _choose()
        return
    try:
        client = visitor.client()
        source = client.file(file_id)
        endpoint = _endpoint(client, source)
        estimate = _estimate(client, source, endpoint)
    except ClientError as error:
        visitor.check_refusal(error)
        live.problem("This file cannot be used", error)
        st.page_link("screens/new_batch.py", label="Choose another file", icon=":material/arrow_back:")
        return
    _draw(source, endpoint, estimate)


def _tell_refusal() -> None:
    """Why the upload that led here was refused, once."""
    session = visitor.session()
    if session is not None and session.told is not None:
        error, session.told = session.told, None
        visitor.check_refusal(error)
        live.problem("The file was not stored", error)


def _choose() -> None:
    upload, stored = st.columns(2)
    with upload.container(border=True, height="stretch"):
        st.subheader("Upload a file", anchor=False)
        allowed = visitor.client().platform
        markup.draw(
            FORM.format(lines=f"{allowed.file_lines_max:,}", size=figures.size(allowed.file_bytes_max))
        )
        st.caption("It is checked line by line before anything is held. A line looks like this:")
        st.code(EXAMPLE, language="json", wrap_lines=True)
    with stored.container(border=True, height="stretch"):
        st.subheader("Or take one that is stored", anchor=False)
        live.follow(_recent, _offer, active=lambda _files: False, failed=live.could_not_load)


def _recent(client: Client) -> list[FileInfo]:
    return [one for one in client.files(limit=100).data if one.purpose == "batch"][:RECENT]


def _offer(files: list[FileInfo]) -> None:
    at = figures.now()
    for one in files:
        with st.container(key=f"row-{one.id}"):
            # A link's label is Markdown, which a file's name must not be.
            markup.draw(NAME.format(one.filename or one.id))
            st.page_link("screens/new_batch.py", label="Use this file", query_params={"file": one.id})
            made = figures.relative(one.created_at, at) if one.created_at else ""
            st.caption(f"{figures.size(one.bytes)} · {made} · {one.id}")
    if not files:
        st.caption("No input file is stored yet.")


def _endpoint(client: Client, source: FileInfo) -> str:
    """The endpoint that the file's first line names; when it names none the first one, and the check says so."""
    with client.download(source.id) as content:
        first = next(iter(content.chunks), b"").lstrip(b"\xef\xbb\xbf\r\n").split(b"\n")[0]
    try:
        url = json.loads(first)["url"]
    except (ValueError, LookupError, TypeError):
        url = None
    known = client.platform.endpoints
    return url if url in known else known[0]


def _estimate(client: Client, source: FileInfo, endpoint: str) -> Json:
    """The estimate of this file, made once a visit: it reads all of it."""
    key = f"estimate {source.id}"
    if key not in st.session_state:
        with st.spinner("Every line is being checked and its tokens counted…"):
            st.session_state[key] = client.estimate(
                source.id, endpoint=endpoint, window=client.platform.windows[0]
            )
    found: Json = st.session_state[key]
    return found


def _draw(source: FileInfo, endpoint: str, estimate: Json) -> None:
    name = source.filename or source.id
    markup.draw(NAME.format(name))
    st.caption(f"{figures.size(source.bytes)} · {words.endpoint(endpoint)} · {source.id}")
    numbers = estimates.numbers(estimate)
    for place, (label, shown, what) in zip(st.columns(len(numbers) or 1), numbers, strict=False):
        place.metric(label, shown, border=True, help=what)
    if numbers and not estimate["exact"]:
        st.caption(
            "The file is large: a part of it was counted, the rest is bounded by its size. The hold is never more."
        )
    listed = estimates.errors(estimate)
    if listed:
        _objection(estimates.objection(estimate, visitor.client().platform.windows[0]))
        st.dataframe(errors_table.frame(listed), hide_index=True)
    else:
        _create(source, endpoint, estimate)
    with st.container(horizontal=True):
        st.page_link("screens/new_batch.py", label="Choose another file", icon=":material/arrow_back:")
        if st.button("Check again", icon=":material/refresh:", type="tertiary"):
            del st.session_state[f"estimate {source.id}"]
            st.rerun()


def _objection(found: estimates.Objection | None) -> None:
    if found is not None:
        markup.draw(markup.callout("red" if found.final else "orange", "warning", found.title, found.text))


def _create(source: FileInfo, endpoint: str, estimate: Json) -> None:
    with st.container(border=True):
        windows = visitor.client().platform.windows
        window = st.radio(
            "Completion window",
            windows,
            format_func=lambda one: f"{one}: {WINDOWS[one]}" if len(windows) > 1 else one,
            key="window",
        )
        text = st.text_input(
            "Description",
            key="description",
            max_chars=DESCRIPTION_CHARS_MAX,
            placeholder="What you will know it by",
        )
        found = estimates.objection(estimate, window)
        _objection(found)
        final = found is not None and found.final
        if st.button("Create batch", type="primary", icon=":material/send:", disabled=final):
            _send(source, endpoint, window=window, text=text.strip())


def _send(source: FileInfo, endpoint: str, *, window: str, text: str) -> None:
    """Make the batch, one however often the button is pressed before the answer is here."""
    key_name = f"key {source.id} {window} {text}"
    key = st.session_state.setdefault(key_name, secrets.token_hex(16))
    try:
        batch = visitor.client().create_batch(
            source.id,
            endpoint=endpoint,
            window=window,
            metadata={"description": text} if text else None,
            key=key,
        )
    except ClientError as error:
        visitor.check_refusal(error)
        live.problem("The batch was not created", error)
        return
    del st.session_state[key_name]
    st.switch_page("screens/batch.py", query_params={"id": batch.id})


main()
