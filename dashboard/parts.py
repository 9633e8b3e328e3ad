"""The parts of one batch's page: its state in words, progress, cost, facts. Pure: a batch in, markup out."""

from datetime import datetime

from markupsafe import Markup

from dashboard import figures, listing, markup, words
from gridline.client import Batch, FileInfo, Receipt

HEADING = Markup('<h1 class="gl-title">{}</h1>')
PARAGRAPH = Markup('<div class="gl-muted">{}</div>')
LEGEND = Markup('<div class="gl-legend">{}</div>')
COUNT = Markup('<span class="gl-{}">{}</span>')
FLOW = Markup('<div class="gl-flow">{}</div>')
STEP = Markup("<div>{}</div><div>{}</div>")
CHARGE = Markup('<div class="gl-strong">{}</div><div class="gl-strong">{}</div>')
REST = Markup('<div class="gl-sum">{}</div><div class="gl-sum">{}</div>')
MONO = Markup('<span class="gl-mono">{}</span>')


def title(batch: Batch, source: FileInfo | None) -> Markup:
    """What the customer calls it: its description, else its file's name, else its id."""
    return HEADING.format(listing.described(batch) or (source.filename if source else "") or batch.id)


def subtitle(batch: Batch, at: datetime) -> Markup:
    """Badge, model, endpoint and when."""
    told = " · ".join(
        part
        for part in (batch.model, words.endpoint(batch.endpoint), f"{batch.completion_window} window")
        if part
    )
    line = Markup("{} &nbsp; {} · created {}")
    return line.format(markup.badge(words.status(batch.status)), told, markup.time(batch.created_at, at))


def wait(batch: Batch, at: datetime) -> Markup | None:
    """Why nothing moves, since when, and what helps."""
    if batch.wait is None:
        return None
    since = Markup("Waiting since {}").format(markup.time(batch.wait.since, at)) if batch.wait.since else ""
    text = markup.joined((batch.wait.reason, Markup("<br>"), batch.wait.next_step or ""))
    return markup.callout(
        "orange", "hourglass_top", f"Waiting {words.wait(batch.wait.reason_code)}", text, small=since
    )


def outcome(batch: Batch) -> Markup | None:
    """What a batch that did not simply complete means: what is delivered and what is charged."""
    counts = batch.counts
    if batch.status == "failed":
        whole = [error for error in batch.errors if error.line is None]
        text = whole[0].message if whole else _bad_lines(batch)
        return markup.callout("red", "error", "This batch failed: nothing ran, nothing was charged", text)
    if batch.status == "expired":
        text = f"{_delivered(batch)} The others are in the error file as batch_expired and cost nothing."
        return markup.callout("orange", "timer_off", "The completion window passed", text)
    if batch.status == "cancelled":
        text = f"{_delivered(batch)} The rest of the hold was returned."
        return markup.callout("gray", "block", "This batch was cancelled", text)
    if batch.status == "completed" and counts.failed:
        text = f"{_lines(counts.failed)} failed and cost nothing. The error file says why, line by line."
        return markup.callout("orange", "warning", "Completed, with failed lines", text)
    return None


def cancelling(batch: Batch) -> str | None:
    """What cancelling would do to lines and credits; None when there is nothing to cancel any more."""
    if batch.status not in ("validating", "in_progress"):
        return None
    if batch.hold_nanos is None:
        return "No line has run, so nothing is charged. This cannot be undone."
    done = batch.counts.completed
    charged = f"The {_lines(done)} done so far are" if done != 1 else "The 1 line done so far is"
    first = (
        f"{charged} delivered and charged." if done else "No line is done yet, so nothing is charged for now."
    )
    return (
        f"{first} Lines that run at this moment get 10 seconds to finish and are charged if they do. The others are not run, "
        f"and the rest of the {figures.amount(batch.hold_nanos)} held returns. This cannot be undone."
    )


def _lines(how_many: int) -> str:
    return figures.count(how_many, "line")


def _delivered(batch: Batch) -> str:
    if not batch.counts.completed:
        return "No line had finished by then, so nothing is charged."
    return f"{_lines(batch.counts.completed)} had finished: in the output file, and charged."


def _bad_lines(batch: Batch) -> str:
    found = figures.count(batch.errors_total, "problem")
    return (
        f"Checking the input file found {found}, listed below. Correct the file and send it as a new batch."
    )


def progress(batch: Batch) -> Markup:
    """Done, failed, cancelled, left."""
    counts = batch.counts
    if not counts.total:
        return PARAGRAPH.format(
            "No line was run." if batch.ended else "The lines are counted when the file has been checked."
        )
    shown = [("green", f"{counts.completed:,} done"), ("red", f"{counts.failed:,} failed")]
    if counts.cancelled:
        shown.append(("gray", f"{counts.cancelled:,} cancelled"))
    if counts.left:
        shown.append(("track", f"{counts.left:,} left"))
    label = ", ".join(text for _, text in shown) + f" of {_lines(counts.total)}"
    bar = markup.bar(
        (("green", counts.completed), ("red", counts.failed), ("gray", counts.cancelled)),
        total=counts.total,
        label=label,
    )
    return markup.joined((bar, LEGEND.format(markup.joined(COUNT.format(*one) for one in shown))))


def cost(batch: Batch, receipt: Receipt | None) -> Markup:
    """Held, charged, returned; before the hold, why there is none yet."""
    if receipt is None:
        told = (
            "Nothing was held, nothing was charged."
            if batch.ended
            else "Credits are held once the file is checked."
        )
        return PARAGRAPH.format(told)
    steps = [STEP.format("Held", figures.amount(receipt.hold_nanos))]
    if receipt.charged_nanos is None or receipt.returned_nanos is None:
        told = (
            "The most this batch can cost. When it ends, only delivered lines are charged; the rest returns."
        )
        return markup.joined((FLOW.format(markup.joined(steps)), markup.SMALL.format(told)))
    steps.append(CHARGE.format("Charged", figures.amount(receipt.charged_nanos)))
    steps.append(REST.format("Returned", figures.amount(receipt.returned_nanos)))
    return FLOW.format(markup.joined(steps))


def reckoning(receipt: Receipt) -> Markup:
    """How the charge comes about, to be recomputed by hand."""
    return markup.facts(
        (
            ("Delivered lines", f"{receipt.lines:,}"),
            ("Input", f"{receipt.input_tokens:,} tokens at {figures.price(receipt.input_price_nanos)}"),
            ("", f"= {figures.amount(receipt.input_tokens * receipt.input_price_nanos)}"),
            ("Output", f"{receipt.output_tokens:,} tokens at {figures.price(receipt.output_price_nanos)}"),
            ("", f"= {figures.amount(receipt.output_tokens * receipt.output_price_nanos)}"),
        )
    )


def facts(batch: Batch, source: FileInfo | None, at: datetime) -> Markup:
    """The rest of what the customer gave and may want to look up."""
    rows: list[tuple[str, str | Markup]] = [
        (
            "Input file",
            f"{source.filename} ({figures.size(source.bytes)})" if source else batch.input_file_id,
        ),
        ("Input file id", MONO.format(batch.input_file_id)),
        ("Endpoint", batch.endpoint),
    ]
    if not batch.ended and batch.expires_at:
        rows.append(("Expires", markup.time(batch.expires_at, at)))
    if batch.ended_at:
        rows.append(("Took", figures.duration(batch.ended_at - batch.created_at)))
    rows += [(f"metadata: {name}", value) for name, value in batch.metadata.items()]
    return markup.facts(rows)
