"""The generated documents: ``python -m tests.docs`` writes them, and ``tests/unit/test_docs.py`` holds them true."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from crawler.cli.shared import cli
from crawler.settings import reference

ROOT = Path(__file__).parents[1]
_WIDTH = 100
_HEAD = """\
# Commands

Every command prints its result to standard output and errors to standard error. `crawler COMMAND --help` prints the
text below. This page is generated from it by `python -m tests.docs`.
"""


def commands() -> str:
    """The help of every command, as a page."""
    pages = [f"## `{name}`\n\n```text\n{text}```\n" for name, text in _helps("crawler", cli, None)]
    return "\n".join([_HEAD, *pages])


def _helps(word: str, command: click.Command, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    settings = command.context_settings | {"terminal_width": _WIDTH}
    context = click.Context(command, parent=parent, info_name=word, **settings)
    lines = command.get_help(context).splitlines()
    yield context.command_path, "".join(f"{line.rstrip()}\n" for line in lines)
    if isinstance(command, click.Group):
        for inner_word in command.list_commands(context):
            inner = command.get_command(context, inner_word)
            assert inner is not None
            yield from _helps(inner_word, inner, context)


#: Each generated file, and what writes its text.
DOCUMENTS: Mapping[str, Callable[[], str]] = {
    "docs/cli.md": commands,
    "docs/settings.md": reference.markdown,
    "config/crawler.toml": reference.toml,
}


def main() -> None:
    """Write every generated file."""
    for name, text in DOCUMENTS.items():
        (ROOT / name).write_text(text(), "utf-8")


if __name__ == "__main__":
    main()
