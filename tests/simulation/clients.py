"""Customers in a simulated world: what they send, what they were told, and what they may therefore rely on."""

import json
from datetime import datetime
from random import Random
from typing import Any

from gridline.batches import cancelling, intake
from gridline.batches.repeats import Sent
from gridline.batches.requests import CreateRequest
from gridline.batches.states import Status
from gridline.db.work import unit_of_work
from gridline.errors import Conflict, NotFound, Refused, Unavailable
from gridline.files import keeping, receiving
from gridline.files.errors import FileInUse
from gridline.ledger import posting
from gridline.profiles import profile
from gridline.storage import Store
from tests.gridline.lines.conftest import CHAT, EMBEDDINGS, card, chat_line, embedding_line, jsonl
from tests.simulation.creates import KEY_LASTS, LOOK_LASTS, Create, Customer, Input, Key
from tests.simulation.faults import Crash
from tests.simulation.history import History, Violation

CARDS = {
    "tiny-chat": card("tiny-chat", context_tokens=90, partition_tokens=60),
    "tiny-embed": card("tiny-embed", context_tokens=8, partition_tokens=20),
}
FILES_MAX = 8
BATCHES_MAX = 10


class Clients:
    """Acts for all customers, and remembers what each was promised."""

    def __init__(self, random: Random, store: Store, history: History, customers: list[Customer]) -> None:
        self._random, self._store, self._history = random, store, history
        self.customers = customers
        self.inputs: dict[str, Input] = {}
        """By file id."""
        self._made = self._sent = 0

    def act(self, now: datetime, open_slots: dict[str, int]) -> str:
        """One call of one customer."""
        self._now, self._slots = now, open_slots
        who = self._random.choice(self.customers)
        if who.files and self._made < BATCHES_MAX and self._random.random() < 0.5:
            return f"{who.name} {self._create(who)}"
        acts = [
            (self._upload, 25), (self._create, 40), (self._repeat, 12), (self._cancel, 7), (self._delete, 8),
            (self._top_up, 8),
        ]  # fmt: skip
        if not who.files:
            acts = acts[:1]
        (act,) = self._random.choices([one for one, _ in acts], [weight for _, weight in acts])
        return f"{who.name} {act(who)}"

    def _upload(self, who: Customer) -> str:
        if len(self.inputs) >= FILES_MAX and who.files:
            return "has files enough"
        endpoint, lines, bad = lines_of_a_file(self._random)
        with receiving.receive(self._store, who.account_id, profile.load("gridline")) as incoming:
            incoming.name("requests.jsonl")
            incoming.write(jsonl(*lines))
        file = receiving.keep(self._store, incoming, expires_after_seconds=None)
        ids = tuple(one["custom_id"] for one in lines)
        self.inputs[file.id] = Input(file.id, endpoint, ids, bad)
        who.files.append(self.inputs[file.id])
        return f"uploads {self._history.name('f', file.id)} of {len(lines)} lines{' (bad)' if bad else ''}"

    def _create(self, who: Customer) -> str:
        if not who.files or self._made >= BATCHES_MAX:
            return "creates nothing"
        file = self._random.choice(who.files)
        window = self._random.choice(("24h", "24h", "72h"))
        request = CreateRequest(file.id, file.endpoint, window)
        self._sent += 1
        keyed = self._random.random() < 0.7
        name = f"{'key' if keyed else 'look'}-{self._sent}"
        who.keys[name] = Key(request, KEY_LASTS if keyed else LOOK_LASTS)
        return self._send(who, request, name)

    def _repeat(self, who: Customer) -> str:
        """An earlier create again, sometimes with another body under its key."""
        if not who.keys:
            return "repeats nothing"
        name = self._random.choice(list(who.keys))
        request = who.keys[name].request
        if name.startswith("key") and self._random.random() < 0.2:
            other = "24h" if request.completion_window == "72h" else "72h"
            request = CreateRequest(request.input_file_id, request.endpoint, other)
        return self._send(who, request, name)

    def _send(self, who: Customer, request: CreateRequest, name: str) -> str:
        create = Create(who, request, name, self._now)
        again = who.keys[name].tries > 1
        key = name if name.startswith("key") else None
        sent = Sent(key=key, token_id=who.name, user_agent=name, retry=again)
        try:
            with unit_of_work() as work:
                created = intake.create(
                    work, account_id=who.account_id, actor="token:sim", request=request, sent=sent
                )
                batch_id = created.batch.id
        except Refused as refused:
            return create.refused(refused, open_batches=self._slots[who.account_id])
        except (Unavailable, Crash):
            create.unheard()
            raise
        create.answered(batch_id, replayed=created.replayed)
        self._made += not created.replayed
        return f"{create.said}: {self._history.name('b', batch_id)}{' again' if created.replayed else ''}"

    def _cancel(self, who: Customer) -> str:
        return self.cancel(self._random.choice(who.batches)) if who.batches else "cancels nothing"

    def cancel(self, batch_id: str) -> str:
        """Its customer cancels this batch, if they know of it."""
        who = next((one for one in self.customers if batch_id in one.batches), None)
        if who is None:
            return "cancels nothing"
        said = f"cancels {self._history.name('b', batch_id)}"
        try:
            with unit_of_work() as work:
                batch = cancelling.cancel(
                    work, account_id=who.account_id, batch_id=batch_id, actor="token:sim"
                )
                status, late = batch.status, work.now >= batch.expires_at
        except Conflict:
            return f"{said}: too late"
        if status in (Status.VALIDATING, Status.IN_PROGRESS) and not late:
            raise Violation(f"{said}: answered {status}")
        return f"{said}: {status}"

    def _delete(self, who: Customer) -> str:
        if not who.files:
            return "deletes nothing"
        file = self._random.choice(who.files)
        said = f"deletes {self._history.name('f', file.id)}"
        # Whatever the answer, from now on it may be gone.
        gone_before, who.deleted = file.id in who.deleted, who.deleted | {file.id}
        try:
            with unit_of_work() as work:
                key = keeping.delete(
                    work, account_id=who.account_id, file_id=file.id, actor="token:sim"
                ).object_key
        except FileInUse:
            if not gone_before:
                who.deleted.remove(file.id)
            return f"{said}: in use"
        except NotFound as refused:
            if not gone_before:
                raise Violation(f"{said}: it was never deleted, and yet {refused.message}") from refused
            return f"{said}: gone"
        self._store.delete(key)
        return said

    def _top_up(self, who: Customer) -> str:
        again = who.top_ups > 0 and self._random.random() < 0.3
        who.top_ups += not again
        with unit_of_work() as work:
            posting.grant(
                work, who.account_id, 2_000, actor="operator", why="top-up", key=f"top-up-{who.top_ups}"
            )
        return f"tops up {who.top_ups}{' again' if again else ''}"


def lines_of_a_file(random: Random) -> tuple[str, list[dict[str, Any]], bool]:
    """Endpoint, lines, and whether one of them is bad, so that the whole file is refused."""
    count = random.randint(1, 8)
    kind = random.choices(("good", "bad", "some long", "all long", "embeddings"), (60, 8, 14, 4, 14))[0]
    if kind == "embeddings":
        words = [" ".join(["w1"] * random.choice((1, 3, 5, 5, 12))) for _ in range(count)]
        return EMBEDDINGS, [embedding_line(f"e{at}", input=text) for at, text in enumerate(words)], False
    lines = []
    for at in range(count):
        long = kind == "all long" or (kind == "some long" and random.random() < 0.4)
        text = "x" * (100 if long else random.randint(1, 30))
        lines.append(
            chat_line(
                f"c{at}", messages=[{"role": "user", "content": text}], max_tokens=random.randint(1, 12)
            )
        )
    if kind == "bad":
        lines[random.randrange(count)]["body"]["temperature"] = "hot"
    return CHAT, json.loads(json.dumps(lines)), kind == "bad"
