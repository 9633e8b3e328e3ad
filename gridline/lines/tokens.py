"""How many tokens the engine will bill for a prompt: its own tokenizer and chat template, read from the model's folder."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from gridline.clock import SystemClock
from gridline.lines.errors import ModelNotPrepared, PromptRefused

CHUNK_CHARS_MAX = 1 << 18
CHUNK_TEXTS_MAX = 1_000
"""Encodings take about 100 bytes a token while a chunk lives, so chunks bound the memory."""

SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

_LOOP_OVER_PARTS = re.compile(r"{%-?\s*for\s+\w+\s+in\s+\w+(\.content|\[['\"]content['\"]\])\s*-?%}")


class ModelTokens:
    """Tokenizer and chat template of one prepared model."""

    def __init__(self, folder: Path) -> None:
        """Read ``tokenizer.json``, ``tokenizer_config.json`` and the chat template, if there is one.

        Raises:
            ModelNotPrepared: the folder or its tokenizer is missing on this machine.
        """
        path = tokenizer_of(folder)
        if not path.is_file():
            raise ModelNotPrepared(
                f"The tokenizer of {folder.name} is not on this machine. Its operator must prepare the model."
            )
        self._tokenizer = Tokenizer.from_file(str(path))
        # Some models ship a tokenizer that cuts or pads; the engine turns both off, or counts would differ.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._config = _config(folder)
        self._source = _template_source(folder, self._config)

    @cached_property
    def vocabulary(self) -> int:
        """Number of token ids: valid ones are below it."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    @cached_property
    def longest_token_chars(self) -> int:
        """Characters of the longest token: a longer text than context x this cannot fit, the engine says so too."""
        return max(map(len, self._tokenizer.get_vocab(with_added_tokens=True)))

    def prompt(self, messages: Sequence[dict[str, str]], *, param: str = "messages") -> str:
        """The text that the engine makes of a conversation, which the request has under ``param``.

        Raises:
            PromptRefused: the model's template refuses it (an order of roles, say), or there is no template.
        """
        if self._template is None:
            raise PromptRefused("This model has no chat template.", param=param)
        wrapped = [self._wrapped(message) for message in messages] if self._wants_parts else messages
        try:
            return self._template.render(
                messages=wrapped,
                tools=None,
                documents=None,
                add_generation_prompt=True,
                **self._special_tokens,
            )
        except (jinja2.TemplateError, TypeError) as error:
            raise PromptRefused(
                f"The model's chat template refuses this conversation: {error}", param=param
            ) from error

    def count_prompts(self, prompts: Sequence[str]) -> list[int]:
        """Tokens of rendered conversations: the template has written the special ones."""
        return self._count(prompts, special=False)

    def count_inputs(self, texts: Sequence[str]) -> list[int]:
        """Tokens of texts to embed, special ones included."""
        return self._count(texts, special=True)

    def most(self, text: str) -> int:
        """No fewer tokens than the text has, special ones included, without counting: a token is at least a byte.

        At least a byte of what the tokenizer's normalizer makes of the text, which may be longer.
        """
        normalizer = self._tokenizer.normalizer
        if normalizer is None or text.isascii():
            return len(text.encode()) + self._around
        return len(normalizer.normalize_str(text).encode()) + self._around

    @cached_property
    def _around(self) -> int:
        """Tokens that every text has, and one for the space that some tokenizers begin with."""
        return self.count_inputs([""])[0] + 1

    def _count(self, texts: Sequence[str], *, special: bool) -> list[int]:
        counts: list[int] = []
        for chunk in _chunks(texts):
            encodings = self._tokenizer.encode_batch_fast(chunk, add_special_tokens=special)
            counts.extend(len(encoding) for encoding in encodings)
        return counts

    @cached_property
    def _template(self) -> jinja2.Template | None:
        if self._source is None:
            return None
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = _strftime_now
        return environment.from_string(self._source)

    @cached_property
    def _wants_parts(self) -> bool:
        """Whether the template walks over content parts; the engine then wraps texts for it."""
        return self._source is not None and _LOOP_OVER_PARTS.search(self._source) is not None

    @cached_property
    def _special_tokens(self) -> dict[str, str]:
        """Names and texts of the special tokens, as templates use them."""
        tokens = {}
        for name in SPECIAL_TOKENS:
            value = self._config.get(name)
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                tokens[name] = text
        return tokens

    @staticmethod
    def _wrapped(message: dict[str, str]) -> dict[str, Any]:
        return {**message, "content": [{"type": "text", "text": message["content"]}]}


def tokenizer_of(folder: Path) -> Path:
    """Where a prepared model's tokenizer is, if it is there."""
    return folder / "tokenizer.json"


@lru_cache(maxsize=4)
def model_tokens(folder: Path) -> ModelTokens:
    """Tokenizer and template of a prepared model, read once a process.

    Raises:
        ModelNotPrepared: see ``ModelTokens``.
    """
    return ModelTokens(folder)


def _chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in groups bounded by number and characters; a text over the bound stands alone."""
    chunk: list[str] = []
    chars = 0
    for text in texts:
        if chunk and (chars + len(text) > CHUNK_CHARS_MAX or len(chunk) == CHUNK_TEXTS_MAX):
            yield chunk
            chunk, chars = [], 0
        chunk.append(text)
        chars += len(text)
    if chunk:
        yield chunk


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return config


def _template_source(folder: Path, config: dict[str, Any]) -> str | None:
    """The default chat template, from its own file or from the tokenizer's configuration."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    given = config.get("chat_template")
    if isinstance(given, list):
        given = next((one["template"] for one in given if one.get("name") == "default"), None)
    return given if isinstance(given, str) else None


class _Generation(Extension):
    """``{% generation %}`` marks answers for training; a prompt only needs what stands inside."""

    tags = {"generation"}  # noqa: RUF012 - the library's own way of declaring them

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Keep the inner statements."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:  # noqa: FBT001, FBT002
    """Plain JSON: the library's own filter escapes for HTML, the engine's does not."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return SystemClock().now().strftime(form)
