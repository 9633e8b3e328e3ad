"""What no tracked file may hold: package hosts and one machine's paths; and how pins look."""

import re
import tomllib

import pytest

SELF = "tests/house/test_tracked_files.py"
# Put together here, so that this file names no host either.
REGISTRIES = (("py", "pi.org"), ("python", "hosted.org"), ("npm", "js."), ("ana", "conda.org"))
HOSTS = re.compile(
    "|".join(re.escape("".join(parts)) for parts in REGISTRIES) + r"|(--|-)(extra-)?index-url[ =]\S*://"
)
PATHS = re.compile(r"(?<![\w.~$}/-])/(work|root|farm|home/\w+)(?=[/\s\"'`),:;]|$)", re.MULTILINE)
PIN = re.compile(r"^[A-Za-z0-9._-]+(\[[\w,-]+\])?==[^\s;]+( ;.*)? \\$")


@pytest.mark.parametrize("pattern", [HOSTS, PATHS], ids=["hosts", "paths"])
def test_nothing_of_this_machine_is_written_down(pattern: re.Pattern[str], texts: dict[str, str]) -> None:
    """No registry host, no absolute path of one machine: a clone works anywhere."""
    found = [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for path, text in texts.items()
        if path != SELF
        for match in pattern.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("pattern", "text", "seen"),
    [
        (HOSTS, "pip install -i https://py" + "pi.org/simple", True),
        (HOSTS, "--index-url https://example.org/simple", True),
        (HOSTS, "--index-url $(GRIDLINE_TORCH_INDEX)", False),
        (PATHS, "home: " + "/root", True),
        (PATHS, "gridline/root/work.py and https://x/home/y", False),
    ],
)
def test_the_patterns_see_what_they_forbid(pattern: re.Pattern[str], text: str, *, seen: bool) -> None:
    """Each pattern finds a planted line and leaves a harmless one alone."""
    assert bool(pattern.search(text)) is seen


def pins(text: str) -> list[str]:
    """The requirement lines of a compiled file, hashes and comments left out."""
    return [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]


def test_every_requirement_is_pinned_and_hashed(texts: dict[str, str]) -> None:
    """Compiled requirements hold exact versions, each with a sha256, and no address at all."""
    compiled = {path: text for path, text in texts.items() if re.fullmatch(r"requirements/[\w-]+\.txt", path)}
    assert len(compiled) >= 3
    for path, text in compiled.items():
        assert "://" not in text, path
        assert set(re.findall(r"--hash=(\w+)", text)) == {"sha256"}, path
        assert [line for line in pins(text) if not PIN.match(line)] == [], path
        blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
        assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == [], path


def test_both_environments_judge_a_schema_alike(texts: dict[str, str]) -> None:
    """The schema library has one version in the platform and in the engine, or the two would disagree on what is valid."""
    versions = {
        line.split("==")[1].split()[0]
        for path in (
            "requirements/platform.txt",
            "requirements/engine-cpu.txt",
            "requirements/engine-gpu.txt",
        )
        for line in pins(texts[path])
        if line.startswith("llguidance==")
    }
    assert len(versions) == 1


def test_every_rule_that_is_ignored_has_its_reason(texts: dict[str, str]) -> None:
    """Every lint rule holds but for those that pyproject.toml lists, each with its reason."""
    text = texts["pyproject.toml"]
    lint = text[text.index("[tool.ruff.lint]") : text.index("[tool.coverage")]
    rules = [line for line in lint.splitlines() if re.match(r'\s+"[A-Z]+[0-9]*",', line)]
    assert len(rules) > 10
    assert [line for line in rules if not re.search(r",\s+# \w+", line)] == []
    assert tomllib.loads(text)["tool"]["ruff"]["lint"]["select"] == ["ALL"]


def test_every_noqa_has_its_reason(texts: dict[str, str]) -> None:
    """Where a single line opts out of a lint rule, it says why."""
    silent = {
        path: found for path, code in texts.items() if path != SELF and (found := silent_opt_outs(code))
    }
    assert silent == {}


def silent_opt_outs(code: str) -> list[int]:
    """Lines with a noqa that gives no reason, nor repeats the one of the line above."""
    found: list[int] = []
    given = ""
    for number, line in enumerate(code.splitlines(), 1):
        match = re.search(r"# noqa: ([A-Z0-9, ]+?)(?:\s+(?:- |# |\()?(\w.{3,}))?$", line)
        if "# noqa" in line and not (match and (match[2] or match[1] == given)):
            found.append(number)
        given = match[1] if match else ""
    return found


def test_a_silent_opt_out_is_seen() -> None:
    """A noqa needs its reason, or the same one right below a line that gave it."""
    code = "a  # noqa: S1 - why it is\nb  # noqa: S1\nc  # noqa: S2\nd\ne  # noqa\nf  # noqa: S3  # why it is"
    assert silent_opt_outs(code) == [3, 5]
