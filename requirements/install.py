"""Makes the pinned environments with hashes and bytecode: `python3.11 requirements/install.py platform dev engine`.

Runs on a bare Python 3.11 and knows nothing of the project: `make` calls it. Each set leaves a stamp in its
environment, so that a second call does nothing until a requirements file changes.
"""

# ruff: noqa: INP001 - a script on its own, no package.
import argparse
import hashlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLATFORM, ENGINE, OLDEST = ROOT / ".venv", ROOT / ".venv-engine", ROOT / ".venv-openai-oldest"
SETS = {
    "platform": (PLATFORM, ["platform.txt"]),
    "dev": (PLATFORM, ["dev.txt"]),
    "engine": (ENGINE, ["engine-cpu.txt", "models.txt"]),
    "engine-gpu": (ENGINE, ["engine-gpu.txt", "models.txt"]),
    "openai-oldest": (OLDEST, ["openai-oldest.txt"]),
}


class Failed(Exception):
    """Raised with a sentence for the person at the terminal."""


def say(text: str) -> None:
    """One line of progress, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def clean_environment(**added: str) -> dict[str, str]:
    """The environment of an installer: nothing that points it at another environment or forbids bytecode."""
    dropped = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name not in dropped} | added


def stamp(name: str) -> tuple[Path, str]:
    """The stamp file of a set, and what it holds once this very set is installed."""
    folder, files = SETS[name]
    parts = [(HERE / file).read_bytes() for file in files] + [
        (ROOT / "pyproject.toml").read_bytes(),
        str(ROOT).encode(),
    ]
    return folder / f".installed-{name}", hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_installed(name: str) -> bool:
    """Whether the set is there as its files ask for it."""
    path, wanted = stamp(name)
    return path.exists() and path.read_text() == wanted


def bootstrap() -> Path:
    """Make the platform's environment with the installer in it, by plain pip and hashes; returns the installer."""
    make_environment(PLATFORM)
    installer = PLATFORM / "bin" / "uv"
    wanted = hashlib.sha256((HERE / "uv.txt").read_bytes()).hexdigest()
    mark = PLATFORM / ".installed-uv"
    if not (installer.exists() and mark.exists() and mark.read_text() == wanted):
        pip = [
            str(PLATFORM / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        run([*pip, "--no-deps", "--require-hashes", "-r", str(HERE / "uv.txt")])
        mark.write_text(wanted)
    return installer


def make_environment(folder: Path) -> None:
    """A virtual environment, unless a working one is there (a moved or half-made one is made again)."""
    python = folder / "bin" / "python"
    if (
        python.exists()
        and subprocess.run([python, "-m", "pip", "--version"], check=False, capture_output=True).returncode
        == 0
    ):
        return
    shutil.rmtree(folder, ignore_errors=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", folder],
        check=False,
        capture_output=True,
        text=True,
        env=clean_environment(),
    )
    if made.returncode != 0:
        raise Failed(
            f"Python could not make {folder.name}: {(made.stdout + made.stderr).strip()[-600:]}\n"
            "On Debian and Ubuntu the package python3.11-venv (or python3-venv) is missing."
        )


def run(command: list[str], *, environment: dict[str, str] | None = None) -> None:
    """Run an installer quietly; what it said is shown only when it fails."""
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment or clean_environment(), cwd=ROOT
    )
    if done.returncode != 0:
        raise Failed(
            f"{' '.join(map(str, command[:4]))} … failed:\n{(done.stdout + done.stderr).strip()[-3000:]}"
        )


def local_wheels() -> str:
    """Where pip is told to look for wheels, in uv's words: uv reads none of pip's configuration itself.

    pip's own answer counts, and that of the account's home when HOME points elsewhere (cron, CI, `env -i`).
    """
    found: list[str] = []
    for home in dict.fromkeys((os.environ.get("HOME", ""), pwd.getpwuid(os.getuid()).pw_dir)):
        for key in (":env:.find-links", "global.find-links", "install.find-links"):
            asked = subprocess.run(
                [PLATFORM / "bin" / "python", "-m", "pip", "config", "get", key],
                check=False, capture_output=True, text=True, env=clean_environment(HOME=home),
            )  # fmt: skip
            found += asked.stdout.split() if asked.returncode == 0 else []
    return ",".join(dict.fromkeys(found))


def install(name: str, installer: Path, torch_index: str) -> None:
    """Install one set into its environment, then the project itself, editable."""
    folder, files = SETS[name]
    if folder != PLATFORM:
        make_environment(folder)
    python = str(folder / "bin" / "python")
    pip = [str(installer), "pip", "install", "--quiet", "--python", python, "--compile-bytecode", "--no-deps"]
    environment = clean_environment(
        UV_FIND_LINKS=local_wheels(), UV_CACHE_DIR=cache_folder(), UV_LINK_MODE="copy"
    )
    # The machine's own certificates, as pip uses them: some networks sign with their own.
    environment |= {"UV_SYSTEM_CERTS": "1"}
    asked = [argument for file in files for argument in ("-r", str(HERE / file))]
    try:
        run([*pip, "--require-hashes", *asked], environment=environment)
    except Failed as why:
        if name != "engine" or not torch_index:
            raise
        say(f"engine: the CPU build of torch is in none of pip's sources, trying {torch_index}")
        install_in_two(pip, [HERE / file for file in files], torch_index, environment, why)
    if folder != OLDEST:  # a customer's environment: it holds nothing of ours
        run([*pip, "--no-build-isolation", "--no-sources", "-e", str(ROOT)], environment=environment)
    path, wanted = stamp(name)
    path.write_text(wanted)


def install_in_two(
    pip: list[str], files: list[Path], torch_index: str, environment: dict[str, str], first: Failed
) -> None:
    """Torch from its own index, all else from the usual one (an index that also mirrors others must not win)."""
    text = "".join(file.read_text() for file in files)
    block = re.search(r"^torch==(?:.*\\\n)*.*\n", text, flags=re.MULTILINE)
    if block is None:
        raise first
    with tempfile.TemporaryDirectory() as folder:
        torch, rest = Path(folder, "torch.txt"), Path(folder, "rest.txt")
        torch.write_text(block.group())
        rest.write_text(text.replace(block.group(), ""))
        try:
            run(
                [*pip, "--require-hashes", "--default-index", torch_index, "-r", str(torch)],
                environment=environment,
            )
        except Failed as why:
            raise Failed(
                f"{first}\n{why}\nThe engine needs torch's CPU build. Put its wheel where pip's find-links point, "
                "or name an index that has it: make demo GRIDLINE_TORCH_INDEX=<url>"
            ) from why
        run([*pip, "--require-hashes", "-r", str(rest)], environment=environment)


def cache_folder() -> str:
    """The installer's cache: its usual place, or inside the clone where there is no usable home."""
    given = os.environ.get("UV_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME", "")
    home = Path(os.environ.get("HOME") or "/nonexistent")
    if given:
        return given
    return str(home / ".cache" / "uv") if os.access(home, os.W_OK) else str(PLATFORM / "cache")


def timed(name: str, installer: Path, torch_index: str, failures: list[str]) -> None:
    """Install one set, with its seconds printed; a failure is kept for the end."""
    start = time.monotonic()
    try:
        install(name, installer, torch_index)
    except Failed as why:
        failures.append(f"{name}: {why}")
    else:
        say(f"  {name} installed in {time.monotonic() - start:.0f} s")


def main() -> int:
    """Install the sets named on the command line that are not there yet, the environments side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", choices=sorted(SETS))
    parser.add_argument(
        "--torch-index",
        default="",
        help="index with torch's CPU build, asked only when pip's sources lack it",
    )
    options = parser.parse_args()
    missing = [name for name in options.sets if not is_installed(name)]
    if not missing:
        return 0
    if sys.version_info[:2] != (3, 11):
        raise Failed(
            f"Python 3.11 is needed, this is {sys.version.split()[0]}. Say which one: make PYTHON=/path/to/python3.11"
        )
    start = time.monotonic()
    say(f"Installing {', '.join(missing)} (minutes on a first run)")
    installer = bootstrap()
    failures: list[str] = []
    lanes = [[name for name in missing if SETS[name][0] == folder] for folder in (PLATFORM, ENGINE, OLDEST)]
    threads = [
        threading.Thread(
            target=lambda lane=lane: [timed(one, installer, options.torch_index, failures) for one in lane]
        )
        for lane in lanes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(15)
            if thread.is_alive():
                say(f"  … {time.monotonic() - start:.0f} s")
    if failures:
        raise Failed("\n".join(failures))
    say(f"Environments ready in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failed:
        sys.stderr.write(f"{failed}\n")
        sys.exit(1)
