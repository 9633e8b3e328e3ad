"""Counting: the model's own tokenizer and template, as the engine counts."""

import json
from pathlib import Path

import pytest

from gridline.lines.errors import ModelNotPrepared, PromptRefused
from gridline.lines.tokens import CHUNK_TEXTS_MAX, ModelTokens, model_tokens

from .conftest import chat_tokenizer

USER = [{"role": "user", "content": "Hé"}]


def made(folder: Path, template: str, **config: object) -> ModelTokens:
    """A model with this template."""
    chat_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, **config}))
    return ModelTokens(folder)


def test_prompt_and_count(models_folder: Path) -> None:
    """The template makes the text, the tokenizer counts it (here one token a byte)."""
    tokens = model_tokens(models_folder / "tiny-chat")
    prompt = tokens.prompt(USER)
    assert prompt == "u:Hé;a:"
    assert tokens.count_prompts([prompt, ""]) == [len(prompt.encode()), 0]


def test_inputs_are_neither_cut_nor_padded(models_folder: Path) -> None:
    """Counts include the special tokens and ignore the cutting and padding that a tokenizer file may ask for."""
    tokens = model_tokens(models_folder / "tiny-embed")
    assert tokens.count_inputs(["w1", "w1 " * 30, ""]) == [3, 32, 2]


def test_many_texts(models_folder: Path) -> None:
    """Counts come back in order over the chunks that bound memory."""
    tokens = model_tokens(models_folder / "tiny-embed")
    texts = ["w1 " * (number % 5) for number in range(2 * CHUNK_TEXTS_MAX + 1)]
    assert tokens.count_inputs(texts) == [number % 5 + 2 for number in range(len(texts))]


def test_template_refuses(models_folder: Path) -> None:
    """What a template raises is a refusal of the line in its words, not a crash."""
    with pytest.raises(PromptRefused, match="no such word"):
        model_tokens(models_folder / "tiny-chat").prompt([{"role": "user", "content": "FORBIDDEN"}])


def test_template_features(tmp_path: Path) -> None:
    """Special tokens, loop controls, plain tojson, generation marks and one-line block trimming work."""
    template = (
        "{{ bos_token }}{% for m in messages %}\n{% if loop.first %}{% continue %}{% endif %}\n"
        "{% generation %}{{ m.content | tojson }}{% endgeneration %}\n{% endfor %}"
    )
    tokens = made(tmp_path, template, bos_token="<s>")
    assert tokens.prompt([*USER, {"role": "user", "content": "<é>"}]) == '<s>"<é>"'


def test_template_over_parts(tmp_path: Path) -> None:
    """A template that walks over content parts gets parts, as the engine would give it."""
    template = (
        "{% for m in messages %}{% for part in m['content'] %}[{{ part.text }}]{% endfor %}{% endfor %}"
    )
    assert made(tmp_path, template).prompt(USER) == "[Hé]"


def test_template_is_sandboxed(tmp_path: Path) -> None:
    """A template reaches nothing outside its messages."""
    with pytest.raises(PromptRefused):
        made(tmp_path, "{{ messages.__class__.__mro__ }}{{ messages.append(1) }}").prompt(USER)


def test_model_that_is_not_prepared(tmp_path: Path) -> None:
    """A missing tokenizer is ours to mend: the step may be tried again."""
    with pytest.raises(ModelNotPrepared, match="nowhere"):
        model_tokens(tmp_path / "nowhere")
