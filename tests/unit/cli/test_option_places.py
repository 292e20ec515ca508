"""Options are for what a person changes from run to run; the rest is TOML. So their number is bounded."""

from __future__ import annotations

from collections.abc import Iterator

import click

from crawler.cli.shared import cli

#: How often the help of any command lists an option. Lower it when options go.
MOST_PLACES = 150
#: The same without --db and --json, which nearly every command has.
MOST_OF_THEIR_OWN = 96


def listed(path: str, command: click.Command) -> Iterator[tuple[str, str]]:
    """Each option that the help of ``command`` and of the commands below it lists, with the path of its command."""
    context = click.Context(command, info_name=path)
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            yield path, each.opts[0]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            if not below.hidden:
                yield from listed(f"{path} {name}", below)


def test_the_help_lists_few_options() -> None:
    places = list(listed("crawler", cli))
    own = [place for place in places if place[1] not in ("--db", "--json")]
    assert len(places) <= MOST_PLACES
    assert len(own) <= MOST_OF_THEIR_OWN
