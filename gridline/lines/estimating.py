"""A quick pass over an input file before a batch is made of it: what is wrong with it, and the most that it can cost.

The rules and the counting are those of ``checking``. A file over the bounds below is counted in part: the rest is
bounded by its bytes, so that the ceiling is never below the one that a hold would have. Writes nothing.
"""

from dataclasses import dataclass, field
from pathlib import Path

from gridline import limits
from gridline.lines.card import Card
from gridline.lines.errors import LineError, LineRefused
from gridline.lines.reading import PhysicalLine, physical_lines
from gridline.lines.rules import Rules
from gridline.lines.schema_judge import TOO_MANY, SchemaJudge
from gridline.lines.screening import Screened, Screening
from gridline.lines.sizing import Accepted, Pending, Sizer
from gridline.lines.tokens import model_tokens
from gridline.storage.objects import Store

CHUNK_LINES = 500
CHUNK_BYTES = 1 << 20
"""Lines are counted together for speed, and no more than this is held for it."""
NO_BATCH = ""


class HastyJudge(SchemaJudge):
    """Judges for as long as an estimate may take. A schema that it does not get to is let through, and it says so."""

    def __init__(self) -> None:
        super().__init__()
        self.hurried = False
        """Whether a schema was let through unjudged."""
        self._seconds_left = limits.ESTIMATE_SCHEMAS_SECONDS_MAX

    def _tried(self, text: str) -> str | None:
        problem = super()._tried(text)
        if problem != TOO_MANY:
            return problem
        self.hurried = True
        return None


@dataclass
class Guess:
    """What the pass found. With errors a batch of this file fails, holds nothing, and no number here counts."""

    card: Card | None = None
    """The batch's one base model; None when no line named one."""
    errors: list[LineError] = field(default_factory=list)
    """The first few, in file order."""
    errors_total: int = 0
    lines: int = 0
    refused: int = 0
    """Counted lines that will be error lines: their prompts are too long for the model, say."""
    exact: bool = True
    """Whether every line was counted, and every schema judged."""
    ceiling_nanos: int = 0
    """The most that the lines can cost: the hold, if exact, and never less than it."""
    input_tokens: int = 0
    """Of all lines; where not exact, as many as the counted ones let expect."""
    output_tokens_max: int = 0
    """The most that all lines can write."""


def guess_file(store: Store, rules: Rules, *, file_key: str, file_bytes: int, models_folder: Path) -> Guess:
    """Read the file once and say what a batch of it would be.

    Raises:
        ObjectMissing: the file is gone.
        ModelNotPrepared: this machine lacks the model's tokenizer.
        JudgeUnavailable: this machine cannot judge JSON schemas.
    """
    with HastyJudge() as judge:
        screening = Screening(rules, models_folder=models_folder, judge=judge)
        run = _Pass(screening, models_folder, _every(file_bytes))
        for line in physical_lines(store.stream(file_key)):
            run.read(line)
        return run.end(exact=not judge.hurried)


def _every(file_bytes: int) -> int:
    """Which lines are counted: all, or of a large file every so many over all of it, so that they speak for the others."""
    if file_bytes <= limits.ESTIMATE_COUNTED_BYTES_MAX:
        return 1
    return -(-file_bytes // limits.ESTIMATE_SAMPLED_BYTES)


@dataclass
class _Pass:
    """What is known while the file is read."""

    screening: Screening
    models_folder: Path
    every: int
    guess: Guess = field(default_factory=Guess)
    _sizer: Sizer | None = None
    _pending: list[Pending] = field(default_factory=list)
    _pending_bytes: int = 0
    _counted_lines: int = 0
    _counted_bytes: int = 0
    _counted_tokens: int = 0
    _bounded_bytes: int = 0
    _bounded_tokens: int = 0

    def read(self, line: PhysicalLine) -> None:
        """Take one line."""
        guess = self.guess
        number = guess.lines
        guess.lines += 1
        try:
            custom_id, request = self.screening.read(line)
        except LineRefused as refusal:
            self._add_error(refusal, line.number)
            return
        if guess.errors_total:
            return
        if number % self.every or self._counted_lines >= limits.ESTIMATE_COUNTED_LINES_MAX:
            self._bound(request, line.size)
            return
        self._counted_lines += 1
        self._counted_bytes += line.size
        self._pending.append(Pending(number, custom_id, request))
        self._pending_bytes += line.size
        if len(self._pending) >= CHUNK_LINES or self._pending_bytes >= CHUNK_BYTES:
            self._count()

    def end(self, *, exact: bool) -> Guess:
        """Settle what is pending, and what only the whole file shows."""
        guess = self.guess
        guess.card = self.screening.card
        if not guess.lines:
            self._add_error(LineRefused("The file has no requests."), None)
        if guess.errors_total:
            return guess
        self._count()
        guess.exact = exact and not self._bounded_bytes
        expected = self._bounded_bytes * self._counted_tokens // max(1, self._counted_bytes)
        guess.input_tokens = self._counted_tokens + min(self._bounded_tokens, expected)
        return guess

    def _add_error(self, refusal: LineRefused, line: int | None) -> None:
        self.guess.errors_total += 1
        self._pending.clear()
        if len(self.guess.errors) < limits.ESTIMATE_ERRORS_LISTED_MAX:
            self.guess.errors.append(LineError.of(refusal, line))

    def _count(self) -> None:
        """Count the tokens of the pending lines."""
        if self._pending:
            for one in self._sizer_of_batch().size(self._pending):
                if isinstance(one, Accepted):
                    self._counted_tokens += one.input_tokens
                    self._add(one.input_tokens, one.output_tokens_max)
                else:
                    self.guess.refused += 1
        self._pending.clear()
        self._pending_bytes = 0

    def _bound(self, request: Screened, size: int) -> None:
        """Take the most that a line can be."""
        input_tokens, output_tokens_max = self._sizer_of_batch().most(request)
        self._bounded_bytes += size
        self._bounded_tokens += input_tokens
        self._add(input_tokens, output_tokens_max)

    def _add(self, input_tokens: int, output_tokens_max: int) -> None:
        card = self._sizer_of_batch().card
        self.guess.output_tokens_max += output_tokens_max
        self.guess.ceiling_nanos += input_tokens * card.input_price_nanos
        self.guess.ceiling_nanos += output_tokens_max * card.output_price_nanos

    def _sizer_of_batch(self) -> Sizer:
        """Counts for the model that the lines so far named; a line that was accepted named one."""
        card = self.screening.card
        if card is None:
            raise LookupError("no line named a model")
        self._sizer = self._sizer or Sizer(NO_BATCH, card, model_tokens(self.models_folder / card.id))
        return self._sizer
