"""Write the generated documents: ``python -m tests.docs``. ``test_generated_documents.py`` compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from crawler.cli.shared import cli
from crawler.reasons import Code, EndCode, ErrorKind, MailCode, ReasonCode, ServerState, WaitCode
from crawler.settings import reference

ROOT = Path(__file__).parents[1]
_WIDTH = 100
_HEAD = """\
# Commands

Every command prints its result to standard output and errors to standard error. `crawler COMMAND --help` prints the
text below. This page is generated from it by `python -m tests.docs`.
"""

_REASONS = """\
# Codes of outcomes

Programs compare and count the codes; the views of the [store](store.md) also have a sentence with the particulars. This
page is generated from `crawler/reasons.py` by `python -m tests.docs`.
"""
_OUTCOMES: Mapping[str, type[Code]] = {
    "Reasons of URLs: `urls.reason_code`": ReasonCode,
    "Errors of requests: `requests.error_kind`": ErrorKind,
    "Ends of runs: `runs.ended_code`": EndCode,
    "Waits of sites: `sites.wait_code`": WaitCode,
    "RUP servers: `rup_servers.state_code`": ServerState,
    "Mails that the RUP robot read: `rup_mails.verdict_code`": MailCode,
}
_DECISIONS = """\
# Decisions

Each page has one decision: its context, the decision, the figures behind it, and its consequences. If a decision
changes, a new page replaces the old one. `python -m tests.docs` writes this list.

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


def decisions() -> str:
    """The index of the pages on decisions."""
    pages = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    titles = [page.read_text("utf-8").partition("\n")[0].removeprefix("# ") for page in pages]
    lines = [f"- {page.name[:4]}: [{title}]({page.name})\n" for page, title in zip(pages, titles, strict=True)]
    return "".join([_DECISIONS, *lines])


def reasons() -> str:
    """The codes of outcomes."""
    return "\n".join([_REASONS, *(f"## {heading}\n\n{_codes(codes)}" for heading, codes in _OUTCOMES.items())])


def _codes(codes: type[Code]) -> str:
    rows = [f"| `{code.value}` | {code.meaning} |\n" for code in codes]
    return "".join(["| code | meaning |\n| --- | --- |\n", *rows])


#: Each generated file, and what writes its text.
DOCUMENTS: Mapping[str, Callable[[], str]] = {
    "docs/cli.md": commands,
    "docs/decisions/README.md": decisions,
    "docs/reasons.md": reasons,
    "docs/settings.md": reference.markdown,
    "config/crawler.toml": reference.toml,
}


def main() -> None:
    """Write every generated file."""
    for name, text in DOCUMENTS.items():
        (ROOT / name).write_text(text(), "utf-8")


if __name__ == "__main__":
    main()
