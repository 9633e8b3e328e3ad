"""What is counted for a hold is what the engine bills: our count beside the engine's own, on the packaged models."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gridline.catalog.cards import catalogue
from gridline.lines.chat import ChatRequest
from gridline.lines.embeddings import EmbeddingRequest
from gridline.lines.sizing import Accepted, Pending, Sizer
from gridline.lines.tokens import model_tokens
from gridline.settings import ROOT, inherited_environment
from gridline.settings import settings as ours

CHAT, EMBEDDING = "smollm2-135m-instruct", "all-minilm-l6-v2"
COUNTER = Path(__file__).with_name("engine_counts.py")
ODD = (
    "<|im_start|>", "<|im_end|>", "<|im_end|>\n<|im_start|>assistant\n", "<|endoftext|>", "<s>", "</s>", "[CLS]", "[SEP]",
    "[PAD]", "[MASK]", "[UNK]", "##ing", "\u0120", "\u2581", "\ufffd", "\u200b", "\u202e", "\ufdfa", "\u1e9b\u0323",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\r\n", "\t \t", "\x00", "\x7f", "{{ messages }}", "{% raw %}", "Ünïcödé",
    "漢字かな", "नमस्ते", "العربية", "123456789", "   ",
)  # fmt: skip
"""What tokenizers and templates trip over: their own tokens as text, marks, joiners, characters that grow."""
ENGLISH = (
    "The harbour opens at six, and by seven the first boats are already back with their nets full.",
    "Please summarise the attached report in three sentences, and name the two risks that matter most.",
    "Our quarterly revenue grew by 12.5% to $3,410,000, while costs fell slightly; the board was pleased.",
    "def area(radius):\n    return 3.14159 * radius ** 2\n\nExplain what this function does, step by step.",
    "Dear Ms. O'Neill,\n\nThank you for your letter of 4 March. I'm afraid we can't refund the ticket.\n\nKind regards",
)
CLOSE = 1.3
"""How far above the engine's count ours may be on ordinary text."""

texts = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(ODD), max_size=6
).map("".join)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant"]), "content": texts},
    optional={"name": st.sampled_from(["ann", "<|im_end|>"])},
)
many = settings(
    max_examples=300,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Counter:
    """The engine's tokenizers in a process of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def count(self, model: str, **asked: Any) -> int | None:
        """Tokens that the engine has of a conversation or a text; None where the template refuses."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"model": model, **asked}) + "\n")
        self._process.stdin.flush()
        answer: int | None = json.loads(self._process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def engine() -> Iterator[Counter]:
    """Both packaged models prepared, and the engine's environment counting for them."""
    python, folder = ours().engine_interpreter, ours().models_folder
    environment = inherited_environment() | {"HF_HUB_OFFLINE": "1", "GRIDLINE_MODELS_DIR": str(folder)}
    subprocess.run([python, "-m", "gpu_jobs.prepare"], cwd=ROOT, env=environment, check=True)
    command = [python, str(COUNTER), str(folder / CHAT), str(folder / EMBEDDING)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Counter(process)
        assert process.stdin
        process.stdin.close()


def sizer(model: str) -> Sizer:
    """What validation counts with."""
    return Sizer("batch", catalogue()[model], model_tokens(ours().models_folder / model))


def sized(model: str, request: ChatRequest | EmbeddingRequest) -> int | None:
    """Input tokens that the hold is made of; None where the line would be refused."""
    (one,) = sizer(model).size([Pending(0, "a", request)])
    return one.input_tokens if isinstance(one, Accepted) else None


def chat(conversation: list[dict[str, str]]) -> ChatRequest:
    """A chat line with these messages."""
    return ChatRequest({"model": "m", "messages": conversation}, conversation, 1, 1)


def embedding(text: str) -> EmbeddingRequest:
    """An embeddings line with this text."""
    return EmbeddingRequest({"input": text}, [text], [])


@pytest.mark.engine
@many
@given(conversation=st.lists(messages, min_size=1, max_size=12))
def test_a_conversation_is_counted_as_the_engine_counts_it(
    engine: Counter, conversation: list[dict[str, str]]
) -> None:
    """Any roles and any text, also what looks like special tokens: the same number, and the quick bound covers it."""
    real = engine.count(CHAT, messages=conversation)
    assert real is not None
    assert sized(CHAT, chat(conversation)) == real
    assert sizer(CHAT).most(chat(conversation))[0] >= real


@pytest.mark.engine
@many
@given(text=texts.filter(bool))
def test_a_text_to_embed_is_counted_as_the_engine_counts_it(engine: Counter, text: str) -> None:
    """The same number with its special tokens, a refusal exactly where it is over the context, and a bound that covers."""
    real = engine.count(EMBEDDING, text=text)
    assert real is not None
    card = catalogue()[EMBEDDING]
    assert sized(EMBEDDING, embedding(text)) == (real if real <= card.context_tokens else None)
    assert sizer(EMBEDDING).most(embedding(text))[0] >= min(real, card.context_tokens)


@pytest.mark.engine
@pytest.mark.parametrize("text", ENGLISH)
def test_ordinary_text_is_held_closely(engine: Counter, text: str) -> None:
    """A hold for English is at least what the engine counts, and not much above it."""
    conversation = [{"role": "user", "content": text}]
    pairs = (
        (sized(CHAT, chat(conversation)), engine.count(CHAT, messages=conversation)),
        (sized(EMBEDDING, embedding(text)), engine.count(EMBEDDING, text=text)),
    )
    for mine, real in pairs:
        assert mine is not None
        assert real is not None
        assert real <= mine <= CLOSE * real


@pytest.mark.engine
def test_every_odd_piece_is_counted_right_alone(engine: Counter) -> None:
    """Each of the pieces that tokenizers trip over, by itself and within a sentence, in both models."""
    for piece in ODD:
        for text in (piece, f"a {piece}b {piece}"):
            conversation = [{"role": "user", "content": text}]
            assert sized(CHAT, chat(conversation)) == engine.count(CHAT, messages=conversation), repr(piece)
            assert sized(EMBEDDING, embedding(text)) == engine.count(EMBEDDING, text=text), repr(piece)
