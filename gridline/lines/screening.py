"""Every rule on a line that needs no tokens: its JSON, custom_id, model and body, and what the file's lines share."""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from gridline.limits import ADAPTERS_PER_BATCH_MAX, EMBEDDING_INPUTS_PER_BATCH_MAX
from gridline.lines.card import Card
from gridline.lines.chat import ChatRequest, read_chat
from gridline.lines.embeddings import EmbeddingRequest, read_embeddings
from gridline.lines.errors import LineRefused, shortened
from gridline.lines.fields import kind_of, shown
from gridline.lines.reading import PhysicalLine
from gridline.lines.requests import read_request
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.tokens import tokenizer_of

ADAPTER_PREFIX = "ft:"
KEPT_CHARS_MAX = 64
CUSTOM_ID_BYTES_SHOWN = 520
"""A custom_id of plain letters is shown whole, of others what fits."""
MODEL_PARAM = "body.model"


class Screening:
    """Reads the lines of one file in order; knows what they have in common so far."""

    def __init__(
        self, endpoint: str, cards: Mapping[str, Card], *, models_folder: Path, judge: SchemaJudge
    ) -> None:
        """``cards`` are the models on offer by id; ``judge`` has the file's schemas to judge, and is ended elsewhere."""
        self.card: Card | None = None
        """The batch's one base model; None until a line named one."""
        self._endpoint = endpoint
        self._cards = cards
        self._models_folder = models_folder
        self._judge = judge
        self._inputs = 0
        self._first_uses: dict[str | bytes, int] = {}
        self._adapters: set[str] = set()

    def read(self, line: PhysicalLine) -> tuple[str, ChatRequest | EmbeddingRequest]:
        """The line's custom_id and its request.

        Raises:
            LineRefused: the first rule that the line breaks.
            JudgeUnavailable: this machine cannot judge a schema.
        """
        custom_id, body = read_request(line, self._endpoint)
        self._check_unique(custom_id, line.number)
        card = self._model(body.get("model"))
        if card.kind == "chat":
            return custom_id, read_chat(body, card, self._judge)
        read = read_embeddings(body, card)
        self._check_inputs(read.inputs)
        return custom_id, read

    def _check_unique(self, custom_id: str, line: int) -> None:
        # Long ones as digests, because 50,000 ids of 512 characters are not small.
        kept: str | bytes = custom_id
        if len(custom_id) > KEPT_CHARS_MAX:
            kept = blake2b(custom_id.encode(), digest_size=16).digest()
        first = self._first_uses.setdefault(kept, line)
        if first != line:
            raise LineRefused(
                f"The custom_id '{shortened(custom_id, CUSTOM_ID_BYTES_SHOWN)}' for this request is a duplicate of another request. The custom_id "
                f"parameter must be unique for each request in a batch. It was first used on line {first}.",
                code="duplicate_custom_id",
                param="custom_id",
            )

    def _model(self, name: object) -> Card:
        """The card of the line's model, which must be the batch's."""
        if self.card is not None and name == self.card.id:
            return self.card
        if name is None:
            raise LineRefused("Model parameter is required.", param=MODEL_PARAM)
        if type(name) is not str:
            raise LineRefused(
                f"Invalid type for 'model': expected a string, but got {kind_of(name)} instead.",
                param=MODEL_PARAM,
            )
        card = self._cards.get(name)
        if card is None or self._endpoint not in card.endpoints:
            raise LineRefused(self._why_not(name, card), code="model_not_found", param=MODEL_PARAM)
        if self.card is not None:
            raise LineRefused(
                f"The model '{name}' for this request does not match the rest of the batch. Each batch must contain "
                "requests for a single model.",
                code="mismatched_model",
                param=MODEL_PARAM,
            )
        self.card = card
        self._judge.tokenizer = tokenizer_of(self._models_folder / card.id)
        return card

    def _why_not(self, name: str, card: Card | None) -> str:
        """Why no line may name this model here."""
        start = f"The provided model {shown(name)} is not supported by"
        if card is not None:
            return f"{start} {self._endpoint}, which is this batch's endpoint."
        if not name.startswith(ADAPTER_PREFIX):
            return f"{start} the Batch API."
        if len(self._adapters) < ADAPTERS_PER_BATCH_MAX or name in self._adapters:
            self._adapters.add(name)
            return (
                f"{start} the Batch API: your account has no active fine-tuned model of this id. It does not exist, "
                "was deactivated, or belongs to another account."
            )
        return (
            f"{start} the Batch API: it is one more than the {ADAPTERS_PER_BATCH_MAX} fine-tuned models that a batch "
            "may name. Split the file by model."
        )

    def _check_inputs(self, inputs: int) -> None:
        self._inputs += inputs
        if self._inputs > EMBEDDING_INPUTS_PER_BATCH_MAX >= self._inputs - inputs:
            raise LineRefused(
                f"With this line the batch has more than {EMBEDDING_INPUTS_PER_BATCH_MAX} inputs, the limit of a "
                "batch. Split the file.",
                param="body.input",
            )
