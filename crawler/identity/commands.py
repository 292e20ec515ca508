"""``crawler identity``: the keys by which a crawler signs its requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from crawler.cli.output import console, print_json
from crawler.cli.shared import cli, json_option
from crawler.clock import SystemClock, iso
from crawler.identity import load

if TYPE_CHECKING:
    from crawler.identity.keys import SigningKey


@cli.group()
def identity() -> None:
    """Make and change the keys by which a crawler signs its requests (Web Bot Auth)."""


_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=Path("identity.jwks"))


@identity.command()
@_file
def new(file: Path) -> int:
    """Make a key in FILE (by default identity.jwks), which only its owner can read.

    `crawler run --signing-key FILE --signature-agent URL` signs every request with it.
    """
    keys = load("keys").create(file, int(SystemClock().now()))
    console.print(f"{file}: the key {keys[0].keyid} signs from now on", soft_wrap=True)
    return 0


@identity.command()
@_file
@click.option("--compromised", is_flag=True, help="Drop all other keys at once, and sign with the new key at once.")
def rotate(file: Path, compromised: bool) -> int:
    """Add a key to FILE that replaces the others.

    Publish the directory again afterwards. The new key signs a day later, when all verifiers can know it. The old ones
    are published for a day longer, and then dropped. A running crawl takes the keys from FILE within a minute.
    """
    module = load("keys")
    now = int(SystemClock().now())
    keys = module.rotated(module.read(file), now, compromised=compromised)
    module.write(file, keys)
    _show(keys, now)
    return 0


@identity.command()
@_file
@json_option
def show(file: Path, as_json: bool) -> int:
    """Show the public keys in FILE, with the times from which they sign and until which they are published."""
    module = load("keys")
    keys = module.read(file)
    now = SystemClock().now()
    if as_json:
        print_json({"keys": [key.public_jwk() for key in module.published(keys, now)]})
    else:
        _show(keys, now)
    return 0


def _show(keys: Sequence[SigningKey], now: float) -> None:
    module = load("keys")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in ("key", "state", "signs from", "published until"):
        table.add_column(name)
    current = module.signing(keys, now)
    for key in module.published(keys, now):
        state = "signs" if key is current else "signs later" if key.not_before > now else "no longer signs"
        table.add_row(key.keyid, state, iso(key.not_before), "" if key.expires_at is None else iso(key.expires_at))
    console.print(table)
