"""One streaming pass over an input file: every bad line found, every token counted, partitions written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gridline.limits import BATCH_ERRORS_LISTED_MAX, EMBEDDING_INPUTS_PER_BATCH_MAX, FILE_LINES_MAX
from gridline.lines.card import Card
from gridline.lines.chat import ChatRequest, read_chat
from gridline.lines.embeddings import EmbeddingRequest, read_embeddings
from gridline.lines.errors import LineError, LineRefused
from gridline.lines.fields import kind_of, shown
from gridline.lines.partitions import PartitionPlan, Spool, cut, write_partitions
from gridline.lines.reading import PhysicalLine, physical_lines
from gridline.lines.requests import read_request
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.segments import ResultRow, write_rows
from gridline.lines.sizing import Accepted, Pending, Sizer
from gridline.lines.tokens import model_tokens, tokenizer_of
from gridline.storage import layout
from gridline.storage.objects import Store

PENDING_LINES_MAX = 1_000
PENDING_CHARS_MAX = 1 << 20
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
    ceiling_nanos: int
    """The most that the accepted lines can cost."""
    input_tokens: int
    refused: int
    """Lines that became error lines."""
    partitions: tuple[PartitionPlan, ...]
    """Empty also when every line was refused: then there is nothing to run."""


def check_file(
    store: Store,
    *,
    file_key: str,
    batch_id: str,
    endpoint: str,
    cards: Mapping[str, Card],
    models_folder: Path,
) -> Checked:
    """Read the file once; write its partitions and refused lines unless a line is wrong.

    A second call writes the same bytes under the same keys.

    Raises:
        ObjectMissing: the file is gone.
        ModelNotPrepared: this machine lacks the model's tokenizer.
        JudgeUnavailable: this machine cannot judge JSON schemas.
    """
    with Spool() as spool, SchemaJudge() as judge:
        check = _Pass(batch_id, endpoint, cards, models_folder, spool, judge)
        for line in physical_lines(store.stream(file_key)):
            if not check.read(line):
                break
        check.end()
        if check.errors_total:
            return check.outcome(())
        card = check.card
        plans = cut(spool.weights, card.partition_tokens) if card and spool.weights else []
        if card:
            write_partitions(store, spool, plans, batch_id=batch_id, endpoint=endpoint, card=card)
        if check.refused:
            store.replace(layout.refused_key(batch_id), write_rows(check.refused))
    return check.outcome(tuple(plans))


@dataclass
class _Pass:
    """What is known while the file is read."""

    batch_id: str
    endpoint: str
    cards: Mapping[str, Card]
    models_folder: Path
    spool: Spool
    judge: SchemaJudge
    card: Card | None = None
    total: int = 0
    inputs: int = 0
    errors: list[LineError] = field(default_factory=list)
    errors_total: int = 0
    ceiling_nanos: int = 0
    input_tokens: int = 0
    refused: list[ResultRow] = field(default_factory=list)
    _first_uses: dict[bytes, int] = field(default_factory=dict)
    _pending: list[Pending] = field(default_factory=list)
    _pending_chars: int = 0
    _sizer: Sizer | None = None

    def read(self, line: PhysicalLine) -> bool:
        """Take one line; False when reading on is of no use."""
        if self.total == FILE_LINES_MAX:
            self._add_error(LineRefused(f"The file has more than {FILE_LINES_MAX} requests."), line.number)
            return False
        self.total += 1
        try:
            pending, card = self._well_formed(line)
        except LineRefused as refusal:
            self._add_error(refusal, line.number)
            return True
        if self.errors_total:
            # The batch fails whatever this line's tokens are.
            self._pending.clear()
            return True
        self._sizer = self._sizer or Sizer(self.batch_id, card, model_tokens(self.models_folder / card.id))
        self._pending.append(pending)
        self._pending_chars += pending.request.size
        if len(self._pending) >= PENDING_LINES_MAX or self._pending_chars >= PENDING_CHARS_MAX:
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
            card=self.card,
            ceiling_nanos=self.ceiling_nanos,
            input_tokens=self.input_tokens,
            refused=len(self.refused),
            partitions=partitions,
        )

    def _well_formed(self, line: PhysicalLine) -> tuple[Pending, Card]:
        """The line by every rule that needs no tokens."""
        request = read_request(line, self.endpoint)
        self._check_unique(request.custom_id, line.number)
        card = self._model(request.body)
        read: ChatRequest | EmbeddingRequest
        if card.kind == "chat":
            read = read_chat(request.body, card, self.judge)
        else:
            read = read_embeddings(request.body, card)
            self._check_inputs(read.inputs)
        return Pending(self.total - 1, request.custom_id, read), card

    def _check_unique(self, custom_id: str, line: int) -> None:
        # Digests, because 50,000 ids of 512 characters are not small.
        first = self._first_uses.setdefault(blake2b(custom_id.encode(), digest_size=16).digest(), line)
        if first != line:
            raise LineRefused(
                f"The custom_id '{custom_id}' for this request is a duplicate of another request. The custom_id "
                f"parameter must be unique for each request in a batch. It was first used on line {first}.",
                code="duplicate_custom_id",
                param="custom_id",
            )

    def _model(self, body: dict[str, Any]) -> Card:
        """The line's model, which must be the batch's."""
        name = body.get("model")
        if name is None:
            raise LineRefused("Model parameter is required.", param="body.model")
        if type(name) is not str:
            raise LineRefused(
                f"Invalid type for 'model': expected a string, but got {kind_of(name)} instead.",
                param="body.model",
            )
        card = self.cards.get(name)
        if card is None or self.endpoint not in card.endpoints:
            where = "the Batch API" if card is None else f"{self.endpoint}, which is this batch's endpoint"
            raise LineRefused(
                f"The provided model {shown(name)} is not supported by {where}.",
                code="model_not_found",
                param="body.model",
            )
        if self.card is None:
            self.card = card
            self.judge.tokenizer = tokenizer_of(self.models_folder / card.id)
        if card.id != self.card.id:
            raise LineRefused(
                f"The model '{name}' for this request does not match the rest of the batch. Each batch must contain "
                "requests for a single model.",
                code="mismatched_model",
                param="body.model",
            )
        return card

    def _check_inputs(self, inputs: int) -> None:
        self.inputs += inputs
        if self.inputs > EMBEDDING_INPUTS_PER_BATCH_MAX >= self.inputs - inputs:
            raise LineRefused(
                f"With this line the batch has more than {EMBEDDING_INPUTS_PER_BATCH_MAX} inputs, the limit of a "
                "batch. Split the file.",
                param="body.input",
            )

    def _add_error(self, refusal: LineRefused, line: int | None) -> None:
        self.errors_total += 1
        if len(self.errors) < BATCH_ERRORS_LISTED_MAX:
            self.errors.append(LineError(str(refusal.code), refusal.message, refusal.param, line))

    def _count(self) -> None:
        """Count the tokens of the pending lines and put each where it belongs."""
        if self._sizer is None:
            return
        card = self._sizer.card
        accepted = []
        for one in self._sizer.size(self._pending):
            if isinstance(one, Accepted):
                accepted.append(one)
                self.input_tokens += one.input_tokens
                self.ceiling_nanos += one.input_tokens * card.input_price_nanos
                self.ceiling_nanos += one.output_tokens_max * card.output_price_nanos
            else:
                self.refused.append(one)
        self.spool.add(accepted)
        self._pending.clear()
        self._pending_chars = 0
