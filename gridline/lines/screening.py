"""Every rule on a line that needs no tokens: its JSON, custom_id, model and body, and what the file's lines share."""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gridline.limits import EMBEDDING_INPUTS_PER_BATCH_MAX
from gridline.lines import endpoints, storing
from gridline.lines.adapters import ADAPTER_PREFIX, Adapter
from gridline.lines.card import Card
from gridline.lines.chat import ChatRequest, read_chat
from gridline.lines.embeddings import EmbeddingRequest, read_embeddings
from gridline.lines.errors import LineRefused, StoringDenied, shortened
from gridline.lines.fields import kind_of, shown
from gridline.lines.messages import read_message
from gridline.lines.mixing import Mix
from gridline.lines.reading import PhysicalLine
from gridline.lines.requests import read_request
from gridline.lines.responses import read_response
from gridline.lines.rules import Rules
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.tokens import tokenizer_of

KEPT_CHARS_MAX = 64
CUSTOM_ID_BYTES_SHOWN = 520
"""A custom_id of plain letters is shown whole, of others what fits."""
MODEL_PARAM = "body.model"

Screened = ChatRequest | EmbeddingRequest | StoringDenied
"""What a well-formed line asks for, or why it fails alone."""
_CONVERSATIONS: dict[str, Callable[[dict[str, Any], Card, SchemaJudge], ChatRequest]] = {
    endpoints.CHAT: read_chat,
    endpoints.RESPONSES: read_response,
    endpoints.MESSAGES: read_message,
}
"""How the bodies of the endpoints of chat models are read."""


class Screening:
    """Reads the lines of one file in order; knows what they have in common so far."""

    def __init__(self, rules: Rules, *, models_folder: Path, judge: SchemaJudge) -> None:
        """``judge`` has the file's schemas to judge, and is ended elsewhere."""
        self.card: Card | None = None
        """The batch's one base model; None until a line named one."""
        self._rules = rules
        self._models_folder = models_folder
        self._judge = judge
        self._inputs = 0
        self._first_uses: dict[str | bytes, int] = {}
        self._mix = Mix(rules.offer)

    @property
    def adapters(self) -> tuple[Adapter, ...]:
        """The fine-tuned models that lines named so far, in the order of their first lines."""
        return tuple(self._mix.taken.values())

    def read(self, line: PhysicalLine) -> tuple[str, Screened]:
        """The line's custom_id and its request.

        Raises:
            LineRefused: the first rule that the line breaks.
            JudgeUnavailable: this machine cannot judge a schema.
        """
        custom_id, body = read_request(line, self._rules.endpoint)
        self._check_unique(custom_id, line.number)
        name = body.get("model")
        card = self._model(name)
        if self._rules.storing_fails == "line":
            kept = storing.asked(body)
            if kept is not None:
                return custom_id, storing.denied(kept)
        if card.kind == "chat":
            chat = _CONVERSATIONS[self._rules.endpoint](body, card, self._judge)
            if name in self._mix.taken:
                chat.body["model"] = name
            return custom_id, chat
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
        """The card of the line's model, or of its base, which must be the batch's."""
        if name is None:
            raise LineRefused("Model parameter is required.", param=MODEL_PARAM)
        if type(name) is not str:
            raise LineRefused(
                f"Invalid type for 'model': expected a string, but got {kind_of(name)} instead.",
                param=MODEL_PARAM,
            )
        if self.card is not None and (name == self.card.id or name in self._mix.taken):
            return self.card
        if name.startswith(ADAPTER_PREFIX):
            self.card = self._mix.take(name, self.card, self._rules.endpoint)
        else:
            self.card = self._base(name)
        self._judge.tokenizer = tokenizer_of(self._models_folder / self.card.id)
        return self.card

    def _base(self, name: str) -> Card:
        """The card of a base model that is not the batch's, unless no line named one yet."""
        card = self._rules.cards.get(name)
        if card is None or self._rules.endpoint not in card.endpoints:
            where = (
                "the Batch API."
                if card is None
                else f"{self._rules.endpoint}, which is this batch's endpoint."
            )
            raise LineRefused(
                f"The provided model {shown(name)} is not supported by {where}",
                code="model_not_found",
                param=MODEL_PARAM,
            )
        if self.card is not None:
            raise LineRefused(
                f"The model '{name}' for this request does not match the rest of the batch. Each batch must contain "
                "requests for a single model.",
                code="mismatched_model",
                param=MODEL_PARAM,
            )
        return card

    def _check_inputs(self, inputs: int) -> None:
        self._inputs += inputs
        if self._inputs > EMBEDDING_INPUTS_PER_BATCH_MAX >= self._inputs - inputs:
            raise LineRefused(
                f"With this line the batch has more than {EMBEDDING_INPUTS_PER_BATCH_MAX} inputs, the limit of a "
                "batch. Split the file.",
                param="body.input",
            )
