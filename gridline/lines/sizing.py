"""What only tokens decide: whether a well-formed line fits its model, and the most that it can write."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gridline.errors import InvariantBroken
from gridline.lines.card import Card
from gridline.lines.chat import ChatRequest
from gridline.lines.embeddings import EmbeddingRequest
from gridline.lines.errors import PromptRefused, StoringDenied
from gridline.lines.results import compact, error_body, request_id
from gridline.lines.screening import Screened
from gridline.lines.segments import ResultRow
from gridline.lines.tokens import ModelTokens

TOO_LONG = "context_length_exceeded"


class Pending(NamedTuple):
    """A well-formed line whose tokens are not counted yet."""

    line: int
    """Index among the file's requests, from 0."""
    custom_id: str
    request: Screened


class Accepted(NamedTuple):
    """A line for the engine."""

    line: int
    custom_id: str
    body: str
    """The JSON body that the engine is sent."""
    input_tokens: int
    output_tokens_max: int
    """The most that the line can write, all choices together."""
    model: str
    """The base, or the fine-tuned model that it names."""


@dataclass(frozen=True)
class Sizer:
    """Counts the tokens of one batch's lines, many at a time, for its model."""

    batch_id: str
    card: Card
    tokens: ModelTokens

    def size(self, pending: Sequence[Pending]) -> list[Accepted | ResultRow]:
        """Each line as accepted, or as the error line that it becomes; in the order given."""
        counts = self._counts(pending)
        sized: list[Accepted | ResultRow] = []
        for one, found in zip(pending, counts, strict=True):
            if isinstance(found, PromptRefused):
                sized.append(self._refused(one, found))
                continue
            try:
                sized.append(self._accepted(one, found))
            except PromptRefused as refusal:
                sized.append(self._refused(one, refusal))
        return sized

    def most(self, request: Screened) -> tuple[int, int]:
        """The most tokens that a line can have, of input and written; quick, because nothing is counted."""
        if isinstance(request, StoringDenied):
            return 0, 0
        try:
            texts = self._texts(request)
        except PromptRefused:
            return 0, 0
        context = self.card.context_tokens
        if isinstance(request, ChatRequest):
            written = request.max_tokens or self.card.output_tokens_max
            room = context - (request.max_tokens or 1)
            return min(self.tokens.most(texts[0]), room), written * request.choices
        if request.token_ids:
            return sum(map(len, request.token_ids)), 0
        return sum(min(self.tokens.most(text), context) for text in texts), 0

    def _counts(self, pending: Sequence[Pending]) -> list[list[int] | PromptRefused]:
        """Tokens of every input of every line, all texts counted together; or why a line has no count."""
        texts: list[str] = []
        found: list[list[int] | PromptRefused | slice] = []
        for one in pending:
            if isinstance(one.request, StoringDenied):
                found.append(one.request)
                continue
            try:
                new = self._texts(one.request)
            except PromptRefused as refusal:
                # Kept without its traceback, whose frames would hold every prompt of the chunk.
                found.append(PromptRefused(refusal.message, code=refusal.code, param=refusal.param))
                continue
            if isinstance(one.request, EmbeddingRequest) and one.request.token_ids:
                found.append([len(ids) for ids in one.request.token_ids])
            else:
                found.append(slice(len(texts), len(texts) + len(new)))
                texts.extend(new)
        count = self.tokens.count_prompts if self.card.kind == "chat" else self.tokens.count_inputs
        counted = count(texts)
        return [counted[one] if isinstance(one, slice) else one for one in found]

    def _texts(self, request: ChatRequest | EmbeddingRequest) -> list[str]:
        """The texts whose tokens count, refused unread where their length alone rules them out."""
        if isinstance(request, ChatRequest):
            texts = [self.tokens.prompt(request.messages, param=request.prompt_key)]
            tokens_max = self.card.context_tokens - (request.max_tokens or 1)
        else:
            self._check_vocabulary(request)
            texts = request.texts
            tokens_max = self.card.context_tokens
        chars_max = tokens_max * self.tokens.longest_token_chars
        longest = max(map(len, texts), default=0)
        if longest > chars_max:
            raise PromptRefused(
                f"This model's maximum context length is {self.card.context_tokens} tokens. However, your prompt has "
                f"{longest} characters, and no more than {chars_max} can fit. Please reduce the length of the prompt.",
                code=TOO_LONG,
                param=request.prompt_key if isinstance(request, ChatRequest) else "input",
            )
        return texts

    def _check_vocabulary(self, request: EmbeddingRequest) -> None:
        highest = max(map(max, request.token_ids), default=0)
        if highest >= self.tokens.vocabulary:
            raise PromptRefused(
                f"Token id {str(highest)[:20]} is out of {self.card.id}'s vocabulary of {self.tokens.vocabulary}.",
                param="input",
            )

    def _accepted(self, one: Pending, counts: list[int]) -> Accepted:
        """The line for the engine, if it fits with so many tokens."""
        if isinstance(one.request, ChatRequest):
            return self._chat(one, one.request, counts[0])
        if isinstance(one.request, EmbeddingRequest):
            return self._embedding(one, one.request, counts)
        raise InvariantBroken("A line that fails by itself has no tokens to count.")

    def _chat(self, one: Pending, request: ChatRequest, prompt: int) -> Accepted:
        """The line with the most that it may write filled in: what was asked, or the room that is left."""
        context, most = self.card.context_tokens, self.card.output_tokens_max
        allowed = request.max_tokens or max(1, min(most, context - prompt))
        if prompt + allowed > context:
            raise PromptRefused(
                f"This model's maximum context length is {context} tokens. However, you requested {prompt + allowed} "
                f"tokens ({prompt} in the messages, {allowed} in the completion). Please reduce the length of the "
                "messages or completion.",
                code=TOO_LONG,
                param=request.prompt_key,
            )
        body = compact({**request.body, request.most_key: allowed})
        return Accepted(
            one.line, one.custom_id, body, prompt, allowed * request.choices, request.body["model"]
        )

    def _embedding(self, one: Pending, request: EmbeddingRequest, counts: list[int]) -> Accepted:
        """The line, when every input fits."""
        context = self.card.context_tokens
        for index, count in enumerate(counts):
            if count > context:
                raise PromptRefused(
                    f"This model's maximum context length is {context} tokens. However, input {index} has {count} "
                    "tokens. Please reduce its length.",
                    code=TOO_LONG,
                    param="input",
                )
        return Accepted(one.line, one.custom_id, compact(request.body), sum(counts), 0, self.card.id)

    def _refused(self, one: Pending, refusal: PromptRefused) -> ResultRow:
        """The error line, answered as OpenAI's server would: a status with an error object."""
        code = str(refusal.code)
        return ResultRow(
            line=one.line,
            custom_id=one.custom_id,
            status_code=refusal.status,
            request_id=request_id(self.batch_id, one.line),
            body=error_body(refusal.message, code, kind=refusal.type, param=refusal.param),
            code=code,
            model=self.card.id,
            input_tokens=0,
            output_tokens=0,
        )
