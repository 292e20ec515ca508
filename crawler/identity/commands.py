"""``crawler identity``: the keys by which a crawler signs its requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crawler.cli.console import console
from crawler.cli.layout import table
from crawler.cli.on_store import show as show_result
from crawler.cli.options import config_option, configured, setting_options
from crawler.cli.output import tell
from crawler.cli.shared import cli, json_option
from crawler.clock import SystemClock, iso
from crawler.identity import load
from crawler.settings.keys import KEYS
from crawler.settings.settings import Settings

if TYPE_CHECKING:
    from crawler.identity.keys import SigningKey


@cli.group()
def identity() -> None:
    """Make keys by which a crawler signs its requests (Web Bot Auth), and a page about the crawler."""


_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=Path("identity.jwks"))


@identity.command()
@_file
def new(file: Path) -> None:
    """Make a key in FILE (by default identity.jwks), which only its owner can read.

    A crawl signs every request with it if identity.signing_key and identity.signature_agent are set.
    """
    keys = load("keys").create(file, int(SystemClock().now()))
    console.print(f"{file}: the key {keys[0].keyid} signs from now on", soft_wrap=True)


@identity.command()
@_file
@click.option("--compromised", is_flag=True, help="Drop all other keys at once, and sign with the new key at once.")
def rotate(file: Path, compromised: bool) -> None:
    """Add a key to FILE that replaces the others.

    Publish the directory again afterwards. The new key signs a day later, when all verifiers can know it. The old ones
    are published for a day longer, and then dropped. A running crawl takes the keys from FILE within a minute.
    """
    module = load("keys")
    now = int(SystemClock().now())
    keys = module.rotated(module.read(file), now, compromised=compromised)
    module.write(file, keys)
    _show(keys, now)
    tell("run `crawler identity page` again, and serve what it writes: verifiers need the new directory")


@identity.command()
@_file
@json_option
def show(file: Path, as_json: bool) -> None:
    """Show the public keys in FILE, with the times from which they sign and until which they are published."""
    module = load("keys")
    keys = module.read(file)
    now = SystemClock().now()
    published = module.published(keys, now)
    show_result(as_json, lambda: {"keys": [key.public_jwk() for key in published]}, lambda: _show(keys, now))


@identity.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@config_option()
@setting_options("identity.agent", "identity.contact", hidden=True)
def page(folder: Path, config: Path | None, **options: Any) -> None:
    """Write the page about the crawler, its address ranges and its key directory into DIR, to be served.

    The page says who runs the crawler, why, what is done with the data, how often it asks and how to block it. The
    texts come from the settings identity.operator, identity.about and identity.data_use. Run this daily, and after each
    rotation of keys.
    """
    settings = configured(Settings(), config, options)
    for path in load("publish").publish(folder, settings, SystemClock().now()):
        console.print(str(path), soft_wrap=True)
    for name in ("identity.operator", "identity.about", "identity.data_use"):
        if not KEYS[name].value(settings):
            tell(f"the page does not say {KEYS[name].help.partition(',')[0].lower()}: set {name}")


def _show(keys: Sequence[SigningKey], now: float) -> None:
    module = load("keys")
    current = module.signing(keys, now)
    rows = [
        (
            key.keyid,
            "signs" if key is current else "signs later" if key.not_before > now else "no longer signs",
            iso(key.not_before),
            "" if key.expires_at is None else iso(key.expires_at),
        )
        for key in module.published(keys, now)
    ]
    console.print(table(dict.fromkeys(("key", "state", "signs from", "published until"), "left"), rows))
