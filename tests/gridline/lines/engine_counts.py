"""Counts tokens as the engine does; run by the engine's interpreter, with the models' folders as arguments.

A line of JSON in, ``{"model", "messages"}`` or ``{"model", "text"}``; the number of tokens out, or null where the
chat template refuses the conversation. The calls are those of vLLM's renderer (``vllm/renderers/hf.py``).
"""

import json
import sys
from pathlib import Path
from typing import Any

import jinja2


def count(tokenizer: Any, asked: dict[str, Any]) -> int | None:
    """Tokens of a conversation, as the template writes it, or of a text with its special tokens."""
    if "text" in asked:
        return len(tokenizer.encode(asked["text"], add_special_tokens=True, truncation=False))
    try:
        prompt = tokenizer.apply_chat_template(
            conversation=asked["messages"],
            tools=None,
            tokenize=False,
            add_generation_prompt=True,
            continue_final_message=False,
        )
    except jinja2.TemplateError:
        return None
    return len(tokenizer.encode(prompt, add_special_tokens=False))


def main(folders: list[str]) -> None:
    """Answer until the questions end."""
    from transformers import AutoTokenizer

    tokenizers = {Path(folder).name: AutoTokenizer.from_pretrained(folder) for folder in folders}
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(f"{json.dumps(count(tokenizers[asked['model']], asked))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
