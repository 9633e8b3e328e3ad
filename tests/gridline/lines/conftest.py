"""Two tiny models with real tokenizers, and files written and checked in one call."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE, WordLevel

from gridline import ids
from gridline.catalog.cards import ModelCard
from gridline.lines import endpoints
from gridline.lines.checking import Checked, check_file
from gridline.lines.mixing import Offer
from gridline.lines.rules import Rules
from gridline.lines.schema_judge import SchemaJudge
from gridline.storage.objects import Store

CHAT, EMBEDDINGS = endpoints.CHAT, endpoints.EMBEDDINGS
RESPONSES, MESSAGES = endpoints.RESPONSES, endpoints.MESSAGES
BATCH = ids.derived("batch", "test")
FILE_KEY = "files/acct_1/file-1"
WORDS = [f"w{number}" for number in range(50)]
TEMPLATE = (
    "{% for m in messages %}{% if m.content == 'FORBIDDEN' %}{{ raise_exception('no such word') }}{% endif %}"
    "{{ m['role'][0] + ':' + m['content'] + ';' }}{% endfor %}{% if add_generation_prompt %}a:{% endif %}"
)


def card(model_id: str, **over: Any) -> ModelCard:
    """A card; chat unless the id says embed."""
    embedding = "embed" in model_id
    values: dict[str, Any] = {
        "id": model_id,
        "repository": "tests/tiny",
        "commit": "0" * 40,
        "dtype": "float32",
        "licence": "MIT",
        "kind": "embedding" if embedding else "chat",
        "endpoints": endpoints.OF_KIND["embedding" if embedding else "chat"],
        "context_tokens": 32 if embedding else 8192,
        "output_tokens_max": 0 if embedding else 1024,
        "dimensions": 4 if embedding else None,
        "input_price_nanos": 10,
        "output_price_nanos": 0 if embedding else 20,
        "engine_arguments": ("--dtype", "float32"),
        "partition_tokens": 10_000,
    }
    return ModelCard(**{**values, **over})


CARDS = {name: card(name) for name in ("tiny-chat", "other-chat", "tiny-embed")}


def chat_tokenizer() -> Tokenizer:
    """One token a byte."""
    alphabet = {char: number for number, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def embedding_tokenizer() -> Tokenizer:
    """One token a word and two around them; cuts and pads by itself, as the real MiniLM's does."""
    vocabulary = {word: number for number, word in enumerate(["[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    return tokenizer


@pytest.fixture(scope="session")
def models_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny models prepared."""
    root = tmp_path_factory.mktemp("models")
    for name in CARDS:
        folder = root / name
        folder.mkdir()
        tokenizer = embedding_tokenizer() if "embed" in name else chat_tokenizer()
        tokenizer.save(str(folder / "tokenizer.json"))
        folder.joinpath("tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}))
        if "chat" in name:
            folder.joinpath("chat_template.jinja").write_text(TEMPLATE)
    return root


@pytest.fixture(scope="session")
def judge() -> Iterator[SchemaJudge]:
    """One judge for all tests that only need verdicts, with the tokenizer of bytes."""
    with SchemaJudge() as one:
        yield one


def chat_line(custom_id: object = "a", **body: Any) -> dict[str, Any]:
    """A good chat line, with body keys replaced."""
    values = {
        "model": "tiny-chat",
        "messages": [{"role": "user", "content": "Say ok"}],
        "max_tokens": 8,
        **body,
    }
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": values}


def embedding_line(custom_id: object = "a", **body: Any) -> dict[str, Any]:
    """A good embeddings line, with body keys replaced."""
    values = {"model": "tiny-embed", "input": "w1 w2", **body}
    return {"custom_id": custom_id, "method": "POST", "url": EMBEDDINGS, "body": values}


def jsonl(*lines: object) -> bytes:
    """The lines as a file; bytes are taken as they are."""
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines)


Check = Callable[..., Checked]


@pytest.fixture
def check(store: Store, models_folder: Path) -> Check:
    """Check a file of these lines (or these bytes) for an endpoint."""

    def run(
        *lines: object,
        data: bytes | None = None,
        endpoint: str = CHAT,
        offer: Offer | None = None,
        storing_fails: Literal["file", "line"] = "file",
        **over: ModelCard,
    ) -> Checked:
        store.replace(FILE_KEY, jsonl(*lines) if data is None else data)
        cards = {**CARDS, **{one.id: one for one in over.values()}}
        rules = Rules(endpoint, cards, offer or Offer(), storing_fails)
        return check_file(store, rules, file_key=FILE_KEY, batch_id=BATCH, models_folder=models_folder)

    return run
