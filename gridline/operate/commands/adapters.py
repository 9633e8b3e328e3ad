"""`gridline adapters`: fine-tuned models (LoRA adapters) of accounts: import, list, retire; every change is audited."""

from pathlib import Path

import click

from gridline import storage
from gridline.catalog import adapters as kept
from gridline.catalog import cards
from gridline.db.work import unit_of_work
from gridline.errors import NotFound
from gridline.operate import accounts
from gridline.settings import settings


@click.group()
def adapters() -> None:
    """Fine-tuned models of accounts: import, list, retire."""


@adapters.command("import")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--account", required=True, help="Whose it is: an account's name or id.")
@click.option("--base", required=True, help="Id of the model that it was trained on.")
@click.option("--name", help="The middle of its id; by default one of the account's own.")
@click.option(
    "--qlora", is_flag=True, help="It was trained on a 4-bit base (seen by itself where its folder says so)."
)
def import_folder(folder: Path, account: str, base: str, name: str | None, *, qlora: bool) -> None:
    """Check and import the LoRA adapter in FOLDER, as PEFT saved it, and print its id.

    Importing the same one twice changes nothing.
    """
    with unit_of_work() as work:
        account_id = accounts.by_name_or_id(work, account).id
    card = cards.catalogue().get(base)
    if card is None:
        raise NotFound(f"The catalogue has no model {base!r}. See 'gridline models list'.")
    checked = kept.check_folder(
        folder, card=card, base_folder=settings().models_folder / card.id, account_id=account_id, name=name, qlora=qlora
    )  # fmt: skip
    kept.store_weights(storage.store(), checked)
    with unit_of_work() as work:
        made = kept.add(work, checked, actor=accounts.operator())
    click.echo(f"adapter\t{checked.adapter.id}")
    click.echo(f"imported\t{'now' if made else 'before, nothing changed'}")
    if checked.qlora:
        click.echo(f"note\t{kept.QLORA_NOTE}")


@adapters.command("list")
@click.option("--account", help="Only those of this account (a name or an id).")
def list_adapters(account: str | None) -> None:
    """List adapters: id, state, account, rank, bytes, note."""
    with unit_of_work() as work:
        account_id = None if account is None else accounts.by_name_or_id(work, account).id
        for row in kept.rows(work, account_id):
            state = "active" if row.retired_at is None else f"retired {row.retired_at:%Y-%m-%d}"
            note = kept.QLORA_NOTE if row.qlora else ""
            click.echo(
                f"{row.id}\t{state}\t{row.account_id}\trank {row.rank}\t{row.bytes} bytes\t{note}".rstrip()
            )


@adapters.command()
@click.argument("adapter_id")
def retire(adapter_id: str) -> None:
    """Let no new batch name ADAPTER_ID; batches that were validated with it go on."""
    with unit_of_work() as work:
        changed = kept.retire(work, adapter_id, actor=accounts.operator())
    click.echo(f"retired\t{'now' if changed else 'before, nothing changed'}")
