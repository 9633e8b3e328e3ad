"""Starts the stack, runs sample batches through the unmodified `openai` package, shows what came of it, stays up.

`python -m gridline.operate.demo [--once]`. Ctrl-C (or SIGTERM) stops everything it started.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gridline.catalog.cards import catalogue
from gridline.errors import GridlineError
from gridline.operate.commands.stack import Interrupted, addresses, ignore_signals, interrupt_on_signals
from gridline.operate.demo import customer, samples
from gridline.operate.demo.setting import Customer, open_demo_account, qualify_unless_listed
from gridline.operate.engines import ready_engine
from gridline.operate.stack import running
from gridline.settings import Settings, settings


def say(text: str = "") -> None:
    """One line for the person at the terminal, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def phase(name: str) -> Iterator[None]:
    """A phase of the demo: its name before, its seconds after."""
    say(f"{name} …")
    start = time.monotonic()
    yield
    say(f"{name}: {time.monotonic() - start:.1f} s")
    say()


def show(config: Settings) -> None:
    """Bring the platform up, be its first customer, and print what happened."""
    begin = time.monotonic()
    with phase("Starting the stack (the chat engine starts beside it)"):
        running.wait_until_ready(config, say)
    with phase("Qualifying the chat model: known prompts on its engine"):
        qualify_unless_listed(config, samples.CHAT_MODEL, say)
        who = open_demo_account()
    before = customer.balance(config, who)
    with phase(f"Batch of {len(samples.CHAT_LINES)} chat lines"):
        customer.run_batch(config, who, samples.chat_file(), endpoint="/v1/chat/completions", say=say)
    say(f"First result {time.monotonic() - begin:.0f} s after the start.")
    say()
    with phase("Starting the embedding engine and qualifying its model"):
        ready_engine(config, catalogue()[samples.EMBEDDING_MODEL])
        qualify_unless_listed(config, samples.EMBEDDING_MODEL, say)
    with phase(f"Batch of {len(samples.EMBEDDING_LINES)} embedding lines"):
        customer.run_batch(config, who, samples.embedding_file(), endpoint="/v1/embeddings", say=say)
    after = customer.balance(config, who)
    say(f"Balance before: {before}")
    say(f"Balance after:  {after}")
    say()
    farewell(config, who)


def farewell(config: Settings, who: Customer) -> None:
    """Where to look, and how to go on as this customer."""
    for name, value in addresses(config):
        say(f"{name:<10} {value}")
    say(f"token      {who.token}")
    say("           (of the account 'demo'; made for this run and shown once)")


def main() -> int:
    """Run the demo; what it started is stopped on the way out, whatever the way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="end after printing instead of staying up")
    options = parser.parse_args()
    config = settings()
    started = running.running_pid(config) is None
    interrupt_on_signals()
    try:
        running.start(config, tied=started)
        show(config)
        if not options.once:
            say()
            say("Everything stays up until Ctrl-C.")
            while running.running_pid(config) is not None:
                time.sleep(1)
            say("The stack has ended.")
    except Interrupted:
        say()
        return 130
    except GridlineError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    finally:
        ignore_signals()
        if started:
            say("Stopping …")
            running.stop(config)
            say("Stopped; nothing is left running.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
