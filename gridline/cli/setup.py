"""`gridline setup`: from nothing to a token that every command and script finds. Says what it would do, or does it."""

import platform
import sys
from contextlib import suppress
from urllib.parse import urlsplit

import click

from gridline.cli import configuration
from gridline.cli.configuration import Configuration
from gridline.cli.output import say
from gridline.client import Client, ClientError, SignedIn
from gridline.settings import settings

WOULD = """\
This would
  1. sign in at {url} with your e-mail and password, or sign up if you are new there,
  2. make an API token named {name!r}, and sign out again,
  3. write address and token to {path}, readable by you alone.
Nothing has been done. To do it: gridline setup --apply"""
DONE = """\
Every gridline command now works without options. Next:
  gridline balance
  gridline files check questions.jsonl
  gridline batches run questions.jsonl -o answers.jsonl
OpenAI's SDKs read their own variables:
  export OPENAI_BASE_URL={url}
  export OPENAI_API_KEY=…   (the token in {path})
To revoke the token: {dashboard}/tokens"""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command()
@click.option("--apply", "really", is_flag=True, help="Do it; without this it only says what it would do.")
@click.option(
    "--url", envvar="OPENAI_BASE_URL", help="The API's base URL; default: asked, or this machine's."
)
@click.option(
    "--sign-up", is_flag=True, help="Sign up without asking if nobody has this e-mail and password."
)
def setup(*, really: bool, url: str | None, sign_up: bool) -> None:
    """Sign up or in, make a token, and keep it for the other commands.

    It asks for e-mail and password. Where nobody can be asked, GRIDLINE_EMAIL and GRIDLINE_PASSWORD are read. Run again,
    it changes nothing while the token that it kept works.
    """
    held = configuration.load()
    base_url = url or (held.base_url if held else None) or settings().public_api_url
    if not really:
        say(WOULD.format(url=base_url, name=_name(), path=configuration.path()))
        return
    if url is None and held is None and _asks():
        base_url = click.prompt("Base URL of the API", default=base_url, err=True)
    if held is not None and _works(held, base_url):
        say(f"Nothing to do: the token in {configuration.path()} works.")
        return
    with Client(base_url) as nobody:
        # As a client writes it out, so that SDKs can be given the same.
        base_url = nobody.base_url
        _warn_of_plain_http(base_url)
        signed = _signed_in(nobody, sign_up=sign_up)
    with Client(base_url, signed.secret) as user:
        try:
            made = user.create_token(_name())
            try:
                configuration.save(Configuration(base_url, made.secret))
            except click.ClickException:
                # A token that nobody has is of no use.
                user.revoke_token(made.token.id)
                raise
        finally:
            # If it fails the session ends by itself: nobody has its secret.
            with suppress(ClientError):
                user.sign_out()
    say(f"Made the token {made.token.shown} for {signed.email} and kept it in {configuration.path()}.")
    say(DONE.format(url=base_url, path=configuration.path(), dashboard=settings().public_dashboard_url))


def _signed_in(nobody: Client, *, sign_up: bool) -> SignedIn:
    chosen = settings()
    email = chosen.email or _asked("E-mail", "GRIDLINE_EMAIL")
    password = chosen.password or _asked("Password", "GRIDLINE_PASSWORD", unseen=True)
    try:
        return nobody.sign_in(email, password)
    except ClientError as error:
        if error.code != "invalid_credentials":
            raise
        if not sign_up:
            if not _asks():
                raise click.ClickException(f"{error.message} To sign up with them, add --sign-up.") from error
            click.confirm(
                "No user has this e-mail with this password. Sign up with them?", abort=True, err=True
            )
    if not chosen.password and _asked("The password once more", "GRIDLINE_PASSWORD", unseen=True) != password:
        raise click.ClickException("The two passwords are not the same. Run it again.")
    return nobody.sign_up(email, password)


def _asked(what: str, variable: str, *, unseen: bool = False) -> str:
    if not _asks():
        raise click.ClickException(f"Nobody can be asked for it here: set {variable}.")
    answer: str = click.prompt(what, hide_input=unseen, err=True)
    return answer


def _asks() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty()


def _works(held: Configuration, base_url: str) -> bool:
    """Whether the kept token opens that server; what is unclear (it is away, say) is an error, no reason for a new token."""
    token = held.for_url(base_url)
    if token is None:
        return False
    with Client(base_url, token) as client:
        try:
            client.account()
        except ClientError as error:
            if error.token_refused:
                return False
            raise
    return True


def _warn_of_plain_http(base_url: str) -> None:
    parts = urlsplit(base_url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        say(f"Careful: {base_url} is not https. Whoever is on the way there can read your password.")


def _name() -> str:
    """What the token is for, as the list of tokens says it."""
    return f"gridline setup on {platform.node() or 'a computer'}"[:100]
