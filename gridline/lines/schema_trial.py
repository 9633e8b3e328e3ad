"""What a JSON schema goes through before an engine sees it: built and walked as the engine would, in a process of its own.

Run as a program (``gridline/lines/schema_judge.py`` starts it): one schema a line in, one verdict a line out. A schema
may hang, crash or swell this process; its limits, its parent or the kernel then end it, and nothing else is lost.
"""

import ctypes
import json
import math
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import jsonschema_rs
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from gridline.limits import SCHEMA_BUILD_SECONDS_MAX, SCHEMA_JUDGE_BYTES_MAX, SCHEMA_JUDGED_SECONDS_MAX
from gridline.lines.schema_bounds import patterns_of
from gridline.lines.schema_judge import BYTES, READY, costly_keywords

ENGINE_DEFAULTS: Any = {"whitespace_flexible": True}
"""What vLLM's guidance backend builds with, unless ``disable_any_whitespace`` is set."""

STEPS = 128
FORCED_TOKENS_MAX = 256
STATES_MAX = 16_000
"""Lexer states that a walk may make. The engine's matchers give up at 250,000, and take some 100 MB each by then;
ordinary schemas stay under 5,000 in as many steps, explosive patterns pass 30,000."""
MESSAGE_CHARS_MAX = 200

Fits = Callable[[Any], bool]

_PR_SET_PDEATHSIG = 1
_SAMPLES: tuple[Any, ...] = ("", 0, None, [], {})
_EXPLOSIVE = "its 'pattern' makes more work with every character of an answer; bound its repetitions"
_MEANINGS = (
    ("too many states", _EXPLOSIVE),
    ("too many expressions", _EXPLOSIVE),
    ("fuel", _EXPLOSIVE),
    ("items; max is", "it leaves too many 'properties', 'enum' or 'anyOf' choices open at one place"),
    ("items in row", "it leaves too many 'properties', 'enum' or 'anyOf' choices open at one place"),
    ("too complex", "it leaves too many 'properties', 'enum' or 'anyOf' choices open at one place"),
    ("NoExtension", "no answer can satisfy it: a '$ref' or 'required' leads back to itself"),
    ("schema too large", "the combinations of its 'allOf', 'anyOf' or 'oneOf' are too many"),
    ("if regex is empty", "what it asks of one string ('pattern', 'format', 'allOf') is too much to combine"),
    ("invalid multiple", "'multipleOf' must be above 0"),
)
"""What the library says, by a part of it, and what helps its author."""
_KEYWORDS = (
    ("does not exist", "$ref"),
    ("not present in a registry", "$ref"),
    ("circular reference", "$ref"),
    ("Invalid type:", "type"),
    ("schema must be an object or boolean", "properties, items or another keyword that holds schemas"),
)
"""What the library says without naming the keyword that it speaks of."""


class Trial:
    """Judges schemas with one tokenizer."""

    def __init__(self, tokenizer: LLTokenizer) -> None:
        self._tokenizer = tokenizer
        bits = bytearray(tokenizer.vocab_size // 8 + 1)
        for token in range(tokenizer.vocab_size):
            if not tokenizer.is_special_token(token) and tokenizer.decode_bytes([token]).strip():
                bits[token // 8] |= 1 << token % 8
        self._content = int.from_bytes(bits, "little")
        """A bit for every token with more than white space in it: others lead nowhere."""

    def problem_of(self, text: str) -> str | None:
        """Why the engine cannot take the schema (a JSON text), naming the keyword; None when it can."""
        schema = json.loads(text)
        started = time.process_time()
        try:
            grammar = LLMatcher.grammar_from_json_schema(text, defaults=ENGINE_DEFAULTS)
        except ValueError as error:
            return _explained(str(error), schema)
        problem = LLMatcher.validate_grammar(grammar)
        if not problem:
            matcher = self._matcher(grammar)
            fits = _validator(schema)
            seconds = time.process_time() - started
            if seconds > SCHEMA_BUILD_SECONDS_MAX:
                return (
                    f"preparing it takes {seconds:.1f} seconds, and the limit is {SCHEMA_BUILD_SECONDS_MAX}: "
                    f"{costly_keywords(schema)}."
                )
            for sample in _SAMPLES:
                fits(sample)
            problem = (
                self._walk(matcher, text, fits)
                or self._nested_problem(self._matcher(grammar, 2), "{[", fits)
                or self._nested_problem(self._matcher(grammar, 2), "[{", fits)
                or self._patterns_problem(schema)
            )
        return _explained(problem, schema) if problem else None

    def _matcher(self, grammar: str, walks: int = 1) -> LLMatcher:
        """What the engine builds, but for a smaller bound on the states of as many walks."""
        limits = LLParserLimits(max_lexer_states=walks * STATES_MAX, verbose_errors=False)
        return LLMatcher(self._tokenizer, grammar, log_level=0, limits=limits)

    def _patterns_problem(self, schema: Any) -> str:
        """Each pattern alone, because the walk through the whole schema may never have come to it; or ""."""
        for pattern in {pattern: None for _, pattern in patterns_of(schema)}:
            alone = json.dumps({"type": "string", "pattern": pattern})
            matcher = self._matcher(LLMatcher.grammar_from_json_schema(alone, defaults=ENGINE_DEFAULTS))
            if matcher.is_error():
                continue  # it is no pattern where it stands, but part of an enum, say
            if problem := self._walk(matcher, pattern, _fits_nothing):
                return problem
        return ""

    def _walk(self, matcher: LLMatcher, alphabet: str, fits: Fits) -> str:
        """Take masks along answers made at random, half of it from the schema's own letters; the first error, or ""."""
        letters = self._letters(alphabet)
        chance = random.Random(alphabet)  # noqa: S311 - the same text gets the same walk
        written: list[int] = []
        for _ in range(STEPS):
            mask = self._mask(matcher)
            if matcher.is_error():
                break
            if matcher.is_stopped():
                self._check_answer(written, fits)
                matcher.reset()
                written = []
                continue
            wished = [chance.choice(letters)] if letters and chance.random() < 0.5 else []  # noqa: PLR2004 - half
            written += self._go_on(matcher, mask, wished, chance)
        return matcher.get_error()

    def _nested_problem(self, matcher: LLMatcher, opened: str, fits: Fits) -> str:
        """An answer as deep as the schema lets it be, then closed, held against the schema; the first error, or ""."""
        openers, closers = self._letters(opened), self._letters('}]"')
        chance = random.Random(0)  # noqa: S311 - see above
        written: list[int] = []
        for step in range(2 * STEPS):
            mask = self._mask(matcher)
            if matcher.is_error() or matcher.is_stopped():
                break
            written += self._go_on(matcher, mask, openers if step < STEPS else closers, chance)
        self._check_answer(written, fits)
        return matcher.get_error()

    def _mask(self, matcher: LLMatcher) -> int:
        """A bit for every token that may come next."""
        return int.from_bytes(matcher.compute_bitmask(), "little")

    def _go_on(self, matcher: LLMatcher, mask: int, wished: list[int], chance: random.Random) -> list[int]:
        """Write one token, a wished one if it may come, and what then must come; the tokens written."""
        allowed = mask & self._content or mask
        token = next((one for one in wished if allowed >> one & 1), None)
        if token is None:
            start = chance.randrange(self._tokenizer.vocab_size)
            rest = allowed >> start
            if not rest:
                start, rest = 0, allowed
            token = start + (rest & -rest).bit_length() - 1
        matcher.consume_token(token)
        forced = matcher.compute_ff_tokens()[:FORCED_TOKENS_MAX]
        if forced:
            matcher.consume_tokens(forced)
        return [token, *forced]

    def _letters(self, text: str) -> list[int]:
        """The tokens that stand for one character of the text."""
        tokens = (self._tokenizer.tokenize_str(letter) for letter in dict.fromkeys(text))
        return [one[0] for one in tokens if len(one) == 1]

    def _check_answer(self, written: list[int], fits: Fits) -> None:
        """Hold a whole answer against the schema, as the GPU job does: the time that it takes is what matters."""
        with suppress(ValueError, RecursionError):
            fits(json.loads(self._tokenizer.decode_str(written)))


def _validator(schema: Any) -> Fits:
    """What tells whether a value fits; the GPU job passes over schemas that its library cannot take."""
    try:
        fits: Fits = jsonschema_rs.validator_for(schema, retriever=_no_documents).is_valid
    except ValueError:
        return _fits_nothing
    return fits


def _fits_nothing(_: Any) -> bool:
    return False


def _no_documents(address: str) -> Any:
    raise ValueError(address)


def _explained(problem: str, schema: Any) -> str:
    """The library's words on one short line, with the keyword that they speak of."""
    for part, meaning in _MEANINGS:
        if part in problem:
            return f"{meaning}."
    line = " ".join(problem.split())[:MESSAGE_CHARS_MAX].rstrip(".")
    if " regex" in f" {line}":
        keyword = next((keyword for keyword, pattern in patterns_of(schema) if pattern in line), "pattern")
        return f"'{keyword}': {line}."
    for part, keyword in _KEYWORDS:
        if part in line:
            return f"'{keyword}': {line}."
    return f"{line}."


def _bound_process(parent: int) -> None:
    """Die with the parent; more memory than allowed above what is taken now ends this process."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)  # it was gone before the kernel knew
    base = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = base + SCHEMA_JUDGE_BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _loaded(tokenizer: str) -> LLTokenizer:
    """The tokenizer of this file; the one of bytes where it cannot be read."""
    if tokenizer != BYTES:
        with suppress(OSError, ValueError):
            return LLTokenizer(Path(tokenizer).read_text(encoding="utf-8"))
    return LLTokenizer(BYTES)


def main(parent: int, tokenizer: str, schemas: BinaryIO, verdicts: BinaryIO) -> None:
    """Judge every line of ``schemas`` until there are no more."""
    trial = Trial(_loaded(tokenizer))
    _bound_process(parent)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    verdicts.write(READY)
    verdicts.flush()
    for line in schemas:
        seconds = math.ceil(time.process_time()) + SCHEMA_JUDGED_SECONDS_MAX
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))
        verdicts.write(json.dumps(trial.problem_of(line.decode())).encode() + b"\n")
        verdicts.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.stdin.buffer, sys.stdout.buffer)
