"""How fast batches are answered beside vLLM's own `run_batch`: `make bench-engine`.

Requests a second of one partition on a warm engine (the GPU job's whole process, its start included), beside run_batch with
the same engine and file (from reading its input to its last answer; its engine's start does not count), in turn. Then a
batch through the whole running stack, from create to completed, beside run_batch on the same file. The model's card says
with what the engine runs, so the same commands measure a GPU.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai

from bench import engine_input
from bench.engine_sides import Done, Ours, prepare, run_batch
from gridline.catalog.cards import ModelCard, catalogue
from gridline.errors import GridlineError, Unavailable
from gridline.operate.demo.samples import CHAT_MODEL
from gridline.operate.demo.setting import open_demo_account, qualify_unless_listed
from gridline.operate.engines import ready_engine
from gridline.operate.stack import running
from gridline.settings import Settings, settings

WARM_UP_LINES = 16
POLL_SECONDS = 0.1
BATCH_SECONDS_MAX = 3600
AIMS = {"distinct": 1.0, "shared": 1.3, "stack": 0.9}
FIGURES = tuple(AIMS)


@dataclass(frozen=True)
class Round:
    """Both sides on the same file."""

    lines: int
    ours: Done
    theirs: Done

    @property
    def ratio(self) -> float:
        """Our requests a second over theirs."""
        return self.theirs.seconds / self.ours.seconds

    @property
    def cpu_ratio(self) -> float:
        """Their seconds of CPU over ours: what other work on the machine disturbs less, and nothing on a GPU."""
        return self.theirs.cpu_seconds / self.ours.cpu_seconds


def partition_rounds(
    config: Settings, card: ModelCard, options: argparse.Namespace, folder: Path
) -> dict[str, list[Round]]:
    """Rounds of the two partitions, each side first in every other one; no two rounds have a prompt in common."""
    known = engine_input.questions(options.questions)
    inputs: dict[str, tuple[int, Callable[[int], list[str]]]] = {
        "distinct": (options.lines, lambda first: engine_input.distinct(known, options.lines, first=first)),
        "shared": (
            options.shared_lines + options.groups * engine_input.EXAMPLES,
            lambda first: engine_input.shared(known, options.shared_lines, options.groups, first=first),
        ),
    }
    found: dict[str, list[Round]] = {name: [] for name in inputs if name in options.only}
    ours = Ours(config, card, folder)
    with ours.engine_keeper():
        first = WARM_UP_LINES
        warm_up = engine_input.distinct(known, WARM_UP_LINES, first=0)
        ours.partition(engine_input.batch_file(warm_up, card.id, max_tokens=options.max_tokens))
        for name, rounds in found.items():
            used, prompts = inputs[name]
            before = ours.cached_share()
            for number in range(1, options.rounds + 1):
                data = engine_input.batch_file(prompts(first), card.id, max_tokens=options.max_tokens)
                first += used
                sides = [lambda d=data: ours.partition(d), lambda d=data: run_batch(config, card, d, folder)]
                if number % 2:
                    theirs, mine = sides[1](), sides[0]()
                else:
                    mine, theirs = sides[0](), sides[1]()
                rounds.append(told(f"{name} {number}", Round(data.count(b"\n"), mine, theirs)))
            share = ours.cached_share(before)
            print(
                f"  our engine found {share.get('hits', 0) / max(share.get('queries', 0), 1):.0%} of prompt tokens in its prefix cache"
            )
    return found


def stack_round(config: Settings, card: ModelCard, options: argparse.Namespace, folder: Path) -> Round:
    """A batch through the running stack, which is then stopped, and run_batch on the same file."""
    known = engine_input.questions(options.questions)
    prompts = engine_input.distinct(known, options.stack_lines, first=0)
    data = engine_input.batch_file(prompts, card.id, max_tokens=options.stack_max_tokens)
    try:
        running.start(config, tied=True)
        running.wait_until_ready(config, print)
        qualify_unless_listed(config, card.id, print)
        ready_engine(config, card)
        customer = open_demo_account()
        sdk = openai.OpenAI(base_url=f"{config.public_api_url}/openai/v1", api_key=customer.token, timeout=60)
        one_line = data[: data.index(b"\n") + 1].replace(b"q-1", b"warm-up")
        completed(sdk, one_line.replace(prompts[0][:20].encode(), b"Hello."))
        ours = completed(sdk, data)
    finally:
        running.stop(config)
    return told("stack", Round(options.stack_lines, ours, run_batch(config, card, data, folder)))


def completed(sdk: openai.OpenAI, data: bytes) -> Done:
    """A batch of this file, from create to completed as its customer sees it.

    Raises:
        Unavailable: it did not complete.
    """
    file = sdk.files.create(file=("bench.jsonl", data), purpose="batch")
    start = time.monotonic()
    batch: Any = sdk.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    while batch.status not in {"completed", "failed", "expired"}:
        if time.monotonic() - start > BATCH_SECONDS_MAX:
            break
        time.sleep(POLL_SECONDS)
        batch = sdk.batches.retrieve(batch.id)
    if batch.status != "completed":
        raise Unavailable(f"{batch.id} is {batch.status}: {batch.errors}")
    return Done(time.monotonic() - start, math.nan, batch.request_counts.completed)


def told(name: str, found: Round) -> Round:
    """The round, printed.

    Raises:
        Unavailable: a side left a line without an answer, so its time means nothing.
    """
    if {found.ours.answered, found.theirs.answered} != {found.lines}:
        raise Unavailable(
            f"{name}: of {found.lines} lines we answered {found.ours.answered}, run_batch {found.theirs.answered}."
        )
    ours, theirs = (found.lines / one.seconds for one in (found.ours, found.theirs))
    print(
        f"  {name}: ours {found.ours.seconds:.1f} s ({ours:.2f} requests/s), run_batch {found.theirs.seconds:.1f} s "
        f"({theirs:.2f}), ratio {found.ratio:.2f}; in CPU {found.ours.cpu_seconds:.0f} s and {found.theirs.cpu_seconds:.0f} s",
        flush=True,
    )
    return found


def report(what: str, rounds: list[Round], aim: float) -> None:
    """The median of the rounds' ratios, and whether the aim is met."""
    ratios = sorted(one.ratio for one in rounds)
    middle = statistics.median(ratios)
    spread = f"rounds {ratios[0]:.2f} to {ratios[-1]:.2f}" if len(ratios) > 1 else "one round"
    missed = "" if middle >= aim else ": missed"
    by_cpu = statistics.median(one.cpu_ratio for one in rounds)
    said = "" if math.isnan(by_cpu) else f"; by seconds of CPU {by_cpu:.2f}"
    print(f"{what:<45} {middle:.2f} of run_batch ({spread}; aim: at least {aim}{missed}){said}")


def keep(path: Path, found: dict[str, list[Round]]) -> None:
    """Write the rounds as JSON lines, those of a figure that was not measured now as they were."""
    lines = path.read_text().splitlines() if path.exists() else []
    kept = [line for line in lines if json.loads(line)["figure"] not in found]
    for name, rounds in found.items():
        for one in rounds:
            seconds = {
                "ours_seconds": round(one.ours.seconds, 2),
                "theirs_seconds": round(one.theirs.seconds, 2),
            }
            kept.append(json.dumps({"figure": name, "lines": one.lines, "aim": AIMS[name]} | seconds))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in kept))


def parsed(arguments: list[str]) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.engine", description="Batches beside vLLM's run_batch."
    )
    parser.add_argument("--questions", type=Path, help="JSONL with question and answer; without it our own")
    parser.add_argument("--model", default=CHAT_MODEL, choices=sorted(catalogue()))
    parser.add_argument("--only", nargs="+", choices=FIGURES, default=FIGURES)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="write each round into this file, for `make bench-plots`")
    parser.add_argument("--lines", type=int, default=100, help="distinct prompts in a partition")
    parser.add_argument("--shared-lines", type=int, default=64, help="prompts that share beginnings")
    parser.add_argument("--groups", type=int, default=32, help="groups of prompts that share one beginning")
    parser.add_argument("--max-tokens", type=int, default=16)
    parser.add_argument("--stack-lines", type=int, default=500)
    parser.add_argument("--stack-max-tokens", type=int, default=16)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Measure what is asked for and print it; 0 also when an aim is missed."""
    options, config = parsed(arguments), settings()
    card = catalogue()[options.model]
    if "stack" in options.only and running.running_pid(config) is not None:
        sys.stderr.write("A stack runs here, with an engine that is busy or about to be. Stop it first: make down\n")  # fmt: skip
        return 1
    try:
        prepare(config, card)
        with tempfile.TemporaryDirectory(prefix="gl-") as name:
            found: dict[str, list[Round]] = {}
            if set(options.only) - {"stack"}:
                found = partition_rounds(config, card, options, Path(name))
            if "stack" in options.only:
                found["stack"] = [stack_round(config, card, options, Path(name))]
    except GridlineError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    print(f"\n{card.id}, requests a second:")
    told_as = {
        "distinct": f"a partition of {options.lines} distinct prompts",
        "shared": f"{options.shared_lines} prompts with {options.groups} beginnings",
        "stack": f"a batch of {options.stack_lines}, create to completed",
    }
    for one, rounds in found.items():
        report(told_as[one], rounds, AIMS[one])
    if options.keep:
        keep(options.keep, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
