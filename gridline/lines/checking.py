"""One streaming pass over an input file: every bad line found, every token counted, partitions written."""

from dataclasses import dataclass, field
from pathlib import Path

from gridline.limits import BATCH_ERRORS_LISTED_MAX, FILE_LINES_MAX
from gridline.lines.adapters import Adapter
from gridline.lines.card import Card
from gridline.lines.errors import LineError, LineRefused
from gridline.lines.partitions import BatchOf, PartitionPlan, RowSpool, Spool, cut, write_partitions
from gridline.lines.reading import PhysicalLine, physical_lines
from gridline.lines.rules import Rules
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.screening import Screening
from gridline.lines.segments import SCHEMA as REFUSED_SCHEMA
from gridline.lines.sizing import Accepted, Pending, Sizer
from gridline.lines.tokens import model_tokens
from gridline.storage import layout
from gridline.storage.objects import Store

READ_BYTES = 1 << 16
"""Read at once: lines cut from so little are still in the processor's cache when they are parsed."""
PENDING_LINES_MAX = 1_000
PENDING_BYTES_MAX = 1 << 20
"""Lines are counted together for speed, and no more than this is held for it."""


@dataclass(frozen=True)
class Checked:
    """What a pass found. With errors nothing was written and nothing below ``total`` counts."""

    errors: tuple[LineError, ...]
    """The first hundred, in file order."""
    errors_total: int
    total: int
    """Requests in the file."""
    card: Card | None
    """The batch's one base model; None when no line named one."""
    adapters: tuple[Adapter, ...]
    """The fine-tuned models of it that lines named."""
    ceiling_nanos: int
    """The most that the accepted lines can cost."""
    input_tokens: int
    refused: int
    """Lines that became error lines."""
    partitions: tuple[PartitionPlan, ...]
    """Empty also when every line was refused: then there is nothing to run."""


def check_file(store: Store, rules: Rules, *, file_key: str, batch_id: str, models_folder: Path) -> Checked:
    """Read the file once; write its partitions and refused lines unless a line is wrong.

    A second call writes the same bytes under the same keys.

    Raises:
        ObjectMissing: the file is gone.
        ModelNotPrepared: this machine lacks the model's tokenizer.
        JudgeUnavailable: this machine cannot judge JSON schemas.
    """
    with Spool() as spool, RowSpool(REFUSED_SCHEMA) as refused, SchemaJudge() as judge:
        screening = Screening(rules, models_folder=models_folder, judge=judge)
        check = _Pass(batch_id, screening, models_folder, spool, refused)
        for line in physical_lines(store.stream(file_key, chunk_bytes=READ_BYTES)):
            if not check.read(line):
                break
        check.end()
        if check.errors_total:
            return check.outcome(())
        card = screening.card
        plans = cut(spool.weights, card.partition_tokens) if card and spool.weights else []
        if card:
            batch = BatchOf(batch_id, rules.endpoint, card, screening.adapters)
            write_partitions(store, spool, plans, batch)
        if refused.rows:
            refused.copy(store, layout.refused_key(batch_id))
    return check.outcome(tuple(plans))


@dataclass
class _Pass:
    """What is known while the file is read."""

    batch_id: str
    screening: Screening
    models_folder: Path
    spool: Spool
    refused: RowSpool
    total: int = 0
    errors: list[LineError] = field(default_factory=list)
    errors_total: int = 0
    ceiling_nanos: int = 0
    input_tokens: int = 0
    _pending: list[Pending] = field(default_factory=list)
    _pending_bytes: int = 0
    _sizer: Sizer | None = None

    def read(self, line: PhysicalLine) -> bool:
        """Take one line; False when reading on is of no use."""
        if self.total == FILE_LINES_MAX:
            self._add_error(LineRefused(f"The file has more than {FILE_LINES_MAX} requests."), line.number)
            return False
        self.total += 1
        try:
            custom_id, request = self.screening.read(line)
        except LineRefused as refusal:
            self._add_error(refusal, line.number)
            return True
        if not self.errors_total:
            self._pending.append(Pending(self.total - 1, custom_id, request))
            self._pending_bytes += line.size
            if len(self._pending) >= PENDING_LINES_MAX or self._pending_bytes >= PENDING_BYTES_MAX:
                self._count()
        return True

    def end(self) -> None:
        """Settle what is pending, and what only the whole file shows."""
        if not self.total:
            self._add_error(LineRefused("The file has no requests."), None)
        if not self.errors_total:
            self._count()

    def outcome(self, partitions: tuple[PartitionPlan, ...]) -> Checked:
        """The pass as its caller sees it."""
        return Checked(
            errors=tuple(self.errors),
            errors_total=self.errors_total,
            total=self.total,
            card=self.screening.card,
            adapters=self.screening.adapters,
            ceiling_nanos=self.ceiling_nanos,
            input_tokens=self.input_tokens,
            refused=self.refused.rows,
            partitions=partitions,
        )

    def _add_error(self, refusal: LineRefused, line: int | None) -> None:
        self.errors_total += 1
        # The batch fails whatever the tokens of its lines are.
        self._pending.clear()
        if len(self.errors) < BATCH_ERRORS_LISTED_MAX:
            self.errors.append(LineError.of(refusal, line))

    def _count(self) -> None:
        """Count the tokens of the pending lines and put each where it belongs."""
        card = self.screening.card
        if card is None or not self._pending:
            return
        self._sizer = self._sizer or Sizer(self.batch_id, card, model_tokens(self.models_folder / card.id))
        accepted, refused = [], []
        for one in self._sizer.size(self._pending):
            if isinstance(one, Accepted):
                accepted.append(one)
                self.input_tokens += one.input_tokens
                self.ceiling_nanos += one.input_tokens * card.input_price_nanos
                self.ceiling_nanos += one.output_tokens_max * card.output_price_nanos
            else:
                refused.append(one)
        self.spool.add(accepted)
        self.refused.append(refused)
        self._pending.clear()
        self._pending_bytes = 0
