"""How fast a file is checked beside what it could be at best: `python -m bench.checking`, part of `make bench-api`.

The largest file (50,000 lines, 200 MB): read and checked beside one pass of a bare JSON parser over its lines; tokens
counted beside the bare tokenizer on the same texts; then the whole check in a process of its own, for its memory. Both sides take turns and are measured in seconds of CPU, so that other work on the
machine counts for neither.
"""

import io
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gridline import limits
from gridline.catalog.cards import catalogue
from gridline.errors import GridlineError
from gridline.lines.checking import READ_BYTES, check_file
from gridline.lines.reading import PhysicalLine, physical_lines
from gridline.lines.rules import Rules
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.screening import Screening
from gridline.lines.sizing import Pending, Sizer
from gridline.lines.tokens import ModelTokens, model_tokens
from gridline.operate.demo.samples import CHAT_MODEL
from gridline.settings import ROOT, settings
from gridline.storage.objects import Store

ENDPOINT = "/v1/chat/completions"
FILE_KEY = "files/bench/input"
BLOCK_LINES = 1_000
PARSE_ROUNDS = 5
COUNTED_BLOCKS = 2
SIZES_LINES = (100, 1_000, 10_000, 50_000)
PARSE_RATIO_AIM = 4
COUNT_SPEED_AIM = 0.8
MEMORY_MEGABYTES_AIM = 300


@dataclass
class Turns:
    """CPU seconds of ours and of the bare library, taken in turns."""

    ours: float = 0.0
    bare: float = 0.0

    def take(self, ours: Callable[[], object], bare: Callable[[], object]) -> None:
        """Let both do the same work."""
        self.bare += cpu_seconds(bare)
        self.ours += cpu_seconds(ours)


def cpu_seconds(work: Callable[[], object]) -> float:
    """What the work took of the processors, all threads together."""
    start = time.process_time()
    work()
    return time.process_time() - start


def lines_of_text() -> Iterator[bytes]:
    """As many lines as a file may have, as long as fill the largest one, of words that differ."""
    chance = random.Random(1)  # noqa: S311 - any words, the same each time
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(5_000)] + [
        "naïve",
        "日本",
    ]
    size = limits.FILE_BYTES_MAX // limits.FILE_LINES_MAX
    for number in range(limits.FILE_LINES_MAX):
        content = " ".join(chance.choices(words, k=size // 5))
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ""}]
        body = {"model": CHAT_MODEL, "messages": messages, "max_tokens": 64, "temperature": 0.2}
        line = {"custom_id": f"line-{number}", "method": "POST", "url": ENDPOINT, "body": body}
        room = size - len(json.dumps(line)) - 1
        messages[1]["content"] = content.encode()[:room].decode(errors="ignore")
        yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def blocks(path: Path) -> Iterator[bytes]:
    """The file, a thousand lines at a time."""
    held: list[bytes] = []
    with path.open("rb") as file:
        for line in file:
            held.append(line)
            if len(held) == BLOCK_LINES:
                yield b"".join(held)
                held = []


def rules() -> Rules:
    """What the lines are held to."""
    return Rules(ENDPOINT, {CHAT_MODEL: catalogue()[CHAT_MODEL]})


def screening(models_folder: Path) -> Screening:
    """What checks one file's lines."""
    return Screening(rules(), models_folder=models_folder, judge=SchemaJudge())


def physical(block: bytes) -> Iterator[PhysicalLine]:
    """The block's lines, cut from chunks as a check reads them."""
    return physical_lines(block[start : start + READ_BYTES] for start in range(0, len(block), READ_BYTES))


def read_through(screen: Screening, block: bytes) -> None:
    """Read and check the block's lines, and count nothing."""
    for line in physical(block):
        screen.read(line)


def checked(store: Store, models_folder: Path) -> None:
    """Read and check every line of the stored file as validation does, and count nothing."""
    screen = screening(models_folder)
    for line in physical_lines(store.stream(FILE_KEY, chunk_bytes=READ_BYTES)):
        screen.read(line)


def parsed(path: Path) -> None:
    """One pass of a bare parser over the file's lines: msgspec's, a little faster than orjson's on them."""
    loads = msgspec.json.decode
    with path.open("rb") as file:
        for line in file:
            loads(line)


def bare_count(tokens: ModelTokens, texts: list[str]) -> None:
    """The bare tokenizer on these texts."""
    tokens._tokenizer.encode_batch_fast(texts, add_special_tokens=False)  # noqa: SLF001 - the very same one


def measure_parsing(path: Path, store: Store, models_folder: Path) -> tuple[list[Turns], dict[int, float]]:
    """Reading and checking beside parsing, round by round; and CPU seconds a line for files of each size."""
    rounds, a_line = [], {}
    for _ in range(PARSE_ROUNDS + 1):
        turns = Turns()
        turns.take(lambda: checked(store, models_folder), lambda: parsed(path))
        rounds.append(turns)
    data = path.read_bytes()
    for size in SIZES_LINES:
        part = b"".join(line for line, _ in zip(io.BytesIO(data), range(size), strict=False))
        repeats = SIZES_LINES[-1] // size
        start = time.process_time()
        for _ in range(repeats):
            read_through(screening(models_folder), part)
        seconds = time.process_time() - start
        a_line[size] = seconds / repeats / size
    return rounds[1:], a_line


def measure_counting(path: Path, models_folder: Path) -> Turns:
    """Templates and counting beside the bare tokenizer on the texts that the templates make."""
    turns = Turns()
    tokens = model_tokens(models_folder / CHAT_MODEL)
    sizer = Sizer("batch_bench", catalogue()[CHAT_MODEL], tokens)
    for number, block in enumerate(blocks(path)):
        if number > COUNTED_BLOCKS:
            break
        screen = screening(models_folder)
        pending = [Pending(line.number - 1, *screen.read(line)) for line in physical(block)]
        texts = [tokens.prompt(one.request.messages) for one in pending]  # type: ignore[union-attr]
        once = Turns()
        once.take(lambda p=pending: sizer.size(p), lambda t=texts: bare_count(tokens, t))  # type: ignore[misc]
        if number:  # the first one warms both up
            turns.ours += once.ours
            turns.bare += once.bare
    return turns


def most_megabytes() -> float:
    """The most memory that this process ever had: ``getrusage`` would count the parent that it was forked from."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def whole_check(folder: Path, models_folder: Path) -> dict[str, float]:
    """The whole check of the stored file, in this process."""
    start, cpu = time.monotonic(), time.process_time()
    found = check_file(
        Store(folder.as_uri()),
        rules(),
        file_key=FILE_KEY,
        batch_id="batch_bench",
        models_folder=models_folder,
    )
    return {
        "lines": found.total,
        "errors": found.errors_total,
        "tokens": found.input_tokens,
        "seconds": time.monotonic() - start,
        "cpu_seconds": time.process_time() - cpu,
        "megabytes": most_megabytes(),
    }


def report_parsing(rounds: list[Turns], a_line: dict[int, float]) -> None:
    """Reading and checking beside parsing, and how even it is."""
    ours, bare = (statistics.median(getattr(one, side) for one in rounds) for side in ("ours", "bare"))
    ratios = sorted(one.ours / one.bare for one in rounds)
    print(
        f"reading and checking   {ours:6.2f} s of CPU, a bare parser {bare:.2f} s: {statistics.median(ratios):.2f} times "
        f"(rounds {ratios[0]:.2f} to {ratios[-1]:.2f}; aim: at most {PARSE_RATIO_AIM})"
    )
    each = ", ".join(f"{size}: {seconds * 1e6:.1f} µs" for size, seconds in a_line.items())
    print(f"a line in a file of    {each} ({a_line[SIZES_LINES[-1]] / a_line[SIZES_LINES[0]]:.2f} times)")


def report_counting(turns: Turns) -> None:
    """Templates and counting beside the bare tokenizer."""
    print(
        f"counting tokens        {turns.ours:6.2f} s of CPU, the bare tokenizer {turns.bare:.2f} s: "
        f"{turns.bare / turns.ours:.2f} of its speed (aim: at least {COUNT_SPEED_AIM})"
    )


def report_whole(whole: dict[str, float]) -> None:
    """The whole check, its memory with it."""
    print(
        f"the whole check        {whole['lines']:.0f} lines, {whole['tokens'] / 1e6:.0f} million tokens in "
        f"{whole['seconds']:.0f} s ({whole['cpu_seconds']:.0f} s of CPU), {whole['megabytes']:.0f} MB at most "
        f"(aim: at most {MEMORY_MEGABYTES_AIM})"
    )


def main() -> int:
    """Make the file, measure, print; with a folder as argument: only the whole check of what is stored there."""
    models_folder = settings().models_folder
    if len(sys.argv) > 1:
        print(json.dumps(whole_check(Path(sys.argv[1]), models_folder)))
        return 0
    try:
        with tempfile.TemporaryDirectory(prefix="gridline-bench-") as folder:
            store = Store(Path(folder).as_uri())
            path = Path(folder) / "input.jsonl"
            with path.open("wb") as file, store.writer(FILE_KEY) as stored:
                for line in lines_of_text():
                    file.write(line)
                    stored.write(line)
            print(f"{limits.FILE_LINES_MAX} lines, {path.stat().st_size / 1e6:.0f} MB")
            report_parsing(*measure_parsing(path, store, models_folder))
            report_counting(measure_counting(path, models_folder))
            done = subprocess.run(
                [sys.executable, "-m", "bench.checking", folder],
                cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            report_whole(json.loads(done.stdout))
    except GridlineError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
