"""The help of `crawler` names every command."""

from __future__ import annotations

import click
import pytest

from crawler.cli.shared import COMMANDS, cli


def test_each_command_of_the_help_exists() -> None:
    context = click.Context(cli)
    for entries in COMMANDS.values():
        for name, entry in entries.items():
            assert cli.get_command(context, name) is not None, name
            assert entry.about.endswith("."), name


def test_a_command_that_is_spelled_wrong_is_named() -> None:
    with pytest.raises(click.UsageError, match=r"No such command 'stauts'\. Did you mean status\?"):
        cli.main(["stauts"], standalone_mode=False)
    with pytest.raises(click.UsageError, match=r"No such command 'xyzzy'\.$"):
        cli.main(["xyzzy"], standalone_mode=False)
