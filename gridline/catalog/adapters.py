"""Adapters: the fine-tuned models of accounts, imported and retired by operators. Knows no engine and no money."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert

from gridline.catalog import cards, peft
from gridline.catalog.cards import ModelCard
from gridline.catalog.errors import AdapterInvalid
from gridline.catalog.tables import Adapter as AdapterRow
from gridline.customers import audit
from gridline.db.work import Work
from gridline.errors import Conflict, NotFound
from gridline.lines.adapters import ADAPTER_PREFIX, Adapter
from gridline.lines.mixing import Offer
from gridline.storage import Store, layout

SHORT_CHARS = 12
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
COPY_BYTES = 1 << 20
QLORA_NOTE = "trained on a 4-bit base, may answer slightly differently on the bf16 one"


@dataclass(frozen=True)
class Checked:
    """A folder that holds an adapter: its id, and what a row needs."""

    adapter: Adapter
    account_id: str
    short_id: str
    qlora: bool
    weights: Path


@dataclass(frozen=True)
class Active:
    """An adapter that lines may name, with its base's card."""

    row: AdapterRow
    base: ModelCard


def check_folder(
    folder: Path, *, card: ModelCard, base_folder: Path, account_id: str, name: str | None, qlora: bool
) -> Checked:
    """Read everything of the folder that decides whether it can be served; its weights are hashed, not loaded.

    Args:
        folder: what PEFT's ``save_pretrained`` wrote.
        card: the base's.
        base_folder: the base as prepared on this host; its config.json has the shapes.
        account_id: whose it is to be.
        name: the middle of its id; None: one of the account's own.
        qlora: the operator knows that it was trained on a 4-bit base.

    Raises:
        AdapterInvalid: what is wrong with it, with field, limit, value and next step.
    """
    config = peft.read_config(folder / peft.CONFIG, _rank_max(card))
    weights = folder / peft.WEIGHTS
    if not weights.is_file():
        others = sorted(one.name for one in folder.glob("adapter_model.*"))
        raise AdapterInvalid(
            f"{weights}: there is no such file{', only ' + ', '.join(others) if others else ''}. Weights are taken as "
            "safetensors only: save the adapter with safe_serialization=True."
        )
    base = base_folder / "config.json"
    if not base.is_file():
        raise AdapterInvalid(
            f"{base}: the base must be prepared on this host before its adapters are imported."
        )
    with weights.open("rb") as file:
        size = file.seek(0, 2)
        if size > card.adapter_bytes_max:
            raise AdapterInvalid(
                f"{weights}: must be at most {card.adapter_bytes_max} bytes, got {size}. Train with a lower rank."
            )
        file.seek(0)
        peft.check_weights(file, size=size, config=config, base=json.loads(base.read_bytes()))
        digest = _digest(file)
    middle = name or "o" + sha256(account_id.encode()).hexdigest()[: SHORT_CHARS - 1]
    if not NAME.fullmatch(middle):
        raise AdapterInvalid(
            f"name must be 1 to 40 lower-case letters, digits, dashes or underscores, got {middle!r}.",
            param="name",
        )
    what = json.dumps([account_id, card.id, middle, digest, config], sort_keys=True)
    short = sha256(what.encode()).hexdigest()[:SHORT_CHARS]
    adapter = Adapter(
        id=f"{ADAPTER_PREFIX}{card.id}:{middle}:{short}",
        base=card.id,
        rank=config["r"],
        bytes=size,
        key=layout.adapter_key(account_id, short),
        sha256=digest,
        config=config,
    )
    four_bits = qlora or peft.trained_on_four_bits(folder / peft.CONFIG)
    return Checked(adapter, account_id, short, four_bits, weights)


def store_weights(store: Store, checked: Checked) -> None:
    """Copy the weights into the store, once; before the row that names them.

    Raises:
        AdapterInvalid: the file is not the one that was checked any more.
    """
    adapter = checked.adapter
    if store.size(adapter.key) == adapter.bytes:
        return
    with checked.weights.open("rb") as file, store.writer(adapter.key) as out:
        digest = sha256()
        while chunk := file.read(COPY_BYTES):
            digest.update(chunk)
            out.write(chunk)
        if digest.hexdigest() != adapter.sha256:
            raise AdapterInvalid(f"{checked.weights}: it changed while it was copied. Import it again.")


def add(work: Work, checked: Checked, *, actor: str) -> bool:
    """Write the adapter down; False: it was there already, and nothing changed.

    Raises:
        Conflict: it was imported before and is retired.
    """
    one = checked.adapter
    made = work.session.execute(
        insert(AdapterRow)
        .values(
            id=one.id, short_id=checked.short_id, account_id=checked.account_id, base=one.base, rank=one.rank,
            bytes=one.bytes, sha256=one.sha256, object_key=one.key, config=dict(one.config), qlora=checked.qlora,
            created_at=work.now, retired_at=None,
        )
        .on_conflict_do_nothing(index_elements=[AdapterRow.id])
        .returning(AdapterRow.id)
    ).one_or_none()  # fmt: skip
    if made is None:
        if work.session.get_one(AdapterRow, one.id).retired_at is not None:
            raise Conflict(f"{one.id} is retired and stays so. Import it under another --name.")
        return False
    details = {
        "adapter": one.id,
        "base": one.base,
        "rank": one.rank,
        "bytes": one.bytes,
        "sha256": one.sha256,
    }
    audit.record(work, account_id=checked.account_id, actor=actor, action="adapter.imported", details=details)
    return True


def retire(work: Work, adapter_id: str, *, actor: str) -> bool:
    """No new batch may name it; those that were validated go on. False: it was retired before.

    Raises:
        NotFound: there is no such adapter.
    """
    row = work.session.get(AdapterRow, adapter_id)
    if row is None:
        raise NotFound(f"There is no adapter {adapter_id!r}. See 'gridline adapters list'.")
    changed = work.session.execute(
        update(AdapterRow)
        .where(AdapterRow.id == adapter_id, AdapterRow.retired_at.is_(None))
        .values(retired_at=work.now)
        .returning(AdapterRow.id)
    ).one_or_none()
    if changed is not None:
        audit.record(
            work,
            account_id=row.account_id,
            actor=actor,
            action="adapter.retired",
            details={"adapter": row.id},
        )
    return changed is not None


def rows(work: Work, account_id: str | None = None) -> Sequence[AdapterRow]:
    """Every adapter, of one account or of all, the oldest first."""
    statement = select(AdapterRow).order_by(AdapterRow.created_at, AdapterRow.id)
    if account_id is not None:
        statement = statement.where(AdapterRow.account_id == account_id)
    return work.session.scalars(statement).all()


def from_row(row: AdapterRow) -> Adapter:
    """The adapter as lines and GPU jobs see it."""
    return Adapter(
        id=row.id, base=row.base, rank=row.rank, bytes=row.bytes, key=row.object_key, sha256=row.sha256,
        config=row.config,
    )  # fmt: skip


def active(work: Work, account_id: str) -> list[Active]:
    """The account's adapters that can be named now, the oldest first."""
    own = [row for row in rows(work, account_id) if row.retired_at is None]
    bases = cards.qualified_bases(work) if own else {}
    return [Active(row, bases[row.base]) for row in own if row.base in bases]


def note(row: AdapterRow) -> str | None:
    """What its owner should know of it, in a sentence; None: nothing."""
    return f"{QLORA_NOTE[0].upper()}{QLORA_NOTE[1:]}." if row.qlora else None


def offer(work: Work, account_id: str) -> Offer:
    """What an account's lines may name: its adapters, each on a base that is qualified here."""
    own, retired = {}, set()
    for row in rows(work, account_id):
        if row.retired_at is None:
            own[row.id] = from_row(row)
        else:
            retired.add(row.id)
    bases = cards.qualified_bases(work) if own else {}
    return Offer(own, bases, frozenset(retired), cards.download_only())


def _rank_max(card: ModelCard) -> int:
    if not card.adapters_by_rank:
        raise AdapterInvalid(
            f"base {card.id!r} takes no adapters. See docs/models.md for those that do.", param="base"
        )
    return card.adapters_by_rank[-1][0]


def _digest(file: BinaryIO) -> str:
    file.seek(0)
    digest = sha256()
    while chunk := file.read(COPY_BYTES):
        digest.update(chunk)
    return digest.hexdigest()
