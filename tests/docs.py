"""Write the generated documents: ``python -m tests.docs``. ``test_generated_documents.py`` compares them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import click

import crawler
from crawler.cli.shared import cli
from crawler.reasons import Code, EndCode, ErrorKind, MailCode, ReasonCode, ServerState, WaitCode
from crawler.settings.keys import KEYS, SECTIONS, Key
from crawler.settings.reference import commented_toml
from crawler.store.views import ROWS, VIEWS

ROOT = Path(__file__).parents[1]
_WIDTH = 100
_HEAD = """\
# Commands

Every command prints its result to standard output and errors to standard error. `crawler COMMAND --help` prints the
text below, and the line about `-h, --help`. This page is generated from it by `python -m tests.docs`.
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
    counts = list(_options("crawler", cli, None))
    listed = sum(not option.hidden for option in counts)
    said = (
        f"The commands list {listed} options, an option of several commands counted at each, and take {len(counts)}.\n"
    )
    return "\n".join([_HEAD, said, *pages])


def _options(word: str, command: click.Command, parent: click.Context | None) -> Iterator[click.Option]:
    """The options of ``command`` and of the commands in it, but not of hidden commands; ``--help`` does not count."""
    context = click.Context(command, parent=parent, info_name=word)
    yield from (parameter for parameter in command.params if isinstance(parameter, click.Option))
    if isinstance(command, click.Group):
        for inner_word in command.list_commands(context):
            inner = command.get_command(context, inner_word)
            if inner is not None and not inner.hidden:
                yield from _options(inner_word, inner, context)


def _helps(word: str, command: click.Command, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    settings = command.context_settings | {"terminal_width": _WIDTH}
    context = click.Context(command, parent=parent, info_name=word, **settings)
    lines = (line.rstrip() for line in command.get_help(context).splitlines() if "-h, --help" not in line)
    yield context.command_path, "\n".join([*lines, ""]).replace("\nOptions:\n\n", "\n").removesuffix("\nOptions:\n")
    if isinstance(command, click.Group):
        for inner_word in command.list_commands(context):
            inner = command.get_command(context, inner_word)
            assert inner is not None
            if not inner.hidden:
                yield from _helps(inner_word, inner, context)


_SETTINGS_HEAD = """\
Every setting of the crawler with its default. Use this file with `crawler run --config FILE`, and keep only the keys \
that you change: a missing key has its default. An option of the command line wins over the file.

A duration is a number of seconds, or a text such as "90 s", "15 min", "2 hours" or "7 d".

Generated from the fields of the settings by `python -m tests.docs`."""


def settings_file() -> str:
    """A TOML file that names every setting with its default and a comment."""
    return commented_toml(_SETTINGS_HEAD, ((key, key.default) for key in KEYS.values()))


def settings_page() -> str:
    """A page that describes every setting."""
    return "\n".join(_settings_lines()) + "\n"


def _settings_lines() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield (
        "Every setting is a key of a TOML file (`crawler run --config FILE`) and of the mapping that `crawler.open` "
        'takes in Python (`{"politeness.delay": 5}`). Many are also options of `crawler run`. An option wins over the '
        "file, and the file over what the store remembers ([running.md](running.md)). "
        "[config/crawler.toml](../config/crawler.toml) is a file with all defaults."
    )
    yield ""
    yield (
        'A duration is a number of seconds, or a text such as `"90 s"`, `"15 min"`, `"2 hours"` or `"7 d"`. A size is '
        'a number of bytes, or a text such as `"500 MB"` or `"2 GiB"`.'
    )
    yield ""
    yield "This page is generated from the fields of the settings by `python -m tests.docs`."
    for section, about in SECTIONS.items():
        yield from ("", f"## [{section}]", "", about, "")
        yield "| key | option | value | default | meaning |"
        yield "| --- | --- | --- | --- | --- |"
        for key in _keys_of(section):
            option = f"`{key.option}`" if key.option else ""
            cells = (f"`{key.name}`", option, key.kind.wanted, f"`{key.kind.toml(key.default)}`", _meaning(key))
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _meaning(key: Key) -> str:
    return " ".join(filter(None, (key.help, key.more))).replace("*", "\\*")


def _keys_of(section: str) -> list[Key]:
    return [key for key in KEYS.values() if key.section == section]


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


_VIEWS = """\
# Views and their columns

[store.md](store.md) explains the views and how to query them. A time is in seconds since the epoch, UTC; a column of
the type "yes" is 0 or 1; any column may be NULL. This page is generated from `crawler/store/views.txt` by
`python -m tests.docs`.
"""


def views() -> str:
    """The views of the store with their columns."""
    return "\n".join([_VIEWS, *(f"## `{view}`: {ROWS[view]}\n\n{_columns(view)}" for view in VIEWS)])


def _columns(view: str) -> str:
    rows = [f"| `{name}` | {column.type} | {column.meaning} |\n" for name, column in VIEWS[view].items()]
    return "".join(["| column | type | meaning |\n| --- | --- | --- |\n", *rows])


_API = """\
# Python reference

The public names of the package `crawler`, generated from their docstrings by `python -m tests.docs`.
[python.md](python.md) explains how to use them.
"""
_ROLE = re.compile(r":\w+:`~?([^`]*)`")


def api() -> str:
    """The public names of the package, with their signatures and docstrings."""
    names = [name for name in crawler.__all__ if not name.startswith("_")]
    return "\n".join([_API, *(_entry(name, getattr(crawler, name)) for name in sorted(names))])


def _entry(name: str, value: Any) -> str:
    parts = [f"## `{name}`\n"]
    if isinstance(value, Enum):
        return "\n".join([*parts, _prose(type(value))])
    if inspect.isclass(value) and not issubclass(value, Exception):
        kinds = inspect.get_annotations(value)
        fields = [_field(word, kinds) for word in kinds if not word.startswith("_")]
        parts += ["| field | type |\n| --- | --- |\n" + "".join(fields)] if fields else []
        parts.insert(1, _prose(value))
        methods = vars(value).items() if not hasattr(value, "_fields") else ()
        parts += [_function(f"{name}.{word}", method) for word, method in methods if _is_method(word, method)]
    elif inspect.isclass(value):
        parts += [_prose(value)]
    else:
        parts = [_function(name, value, level=2)]
    return "\n".join(parts)


def _field(word: str, kinds: Mapping[str, object]) -> str:
    kind = getattr(kinds[word], "__forward_arg__", kinds[word])
    return f"| `{word}` | `{str(kind).replace('|', 'or')}` |\n"


def _is_method(word: str, value: object) -> bool:
    return not word.startswith("_") and inspect.isfunction(inspect.unwrap(value) if callable(value) else value)


def _function(name: str, value: Callable[..., object], level: int = 3) -> str:
    return f"{'#' * level} `{name}`\n\n```python\n{name}{_signature(value)}\n```\n\n{_prose(value)}"


def _signature(value: Callable[..., object]) -> str:
    """The signature without ``self``; a parameter a line if it is long."""
    signature = inspect.signature(value)
    kinds = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    names = [re.sub(r"<function .*?>+( at \w+>)?", "…", str(parameter).replace("'", "")) for parameter in kinds]
    named = next((n for n, parameter in enumerate(kinds) if parameter.kind is inspect.Parameter.KEYWORD_ONLY), None)
    if named is not None:
        names.insert(named, "*")
    result = str(signature.return_annotation).strip("'")
    short = f"({', '.join(names)}) -> {result}"
    return short if len(short) <= _WIDTH else "(\n" + "".join(f"    {name},\n" for name in names) + f") -> {result}"


def _prose(value: object) -> str:
    """The docstring as Markdown."""
    return (
        _ROLE.sub(lambda role: f"`{role[1].rpartition('.')[2]}`", inspect.getdoc(value) or "").replace("``", "`") + "\n"
    )


#: Each generated file, and what writes its text.
DOCUMENTS: Mapping[str, Callable[[], str]] = {
    "docs/api.md": api,
    "docs/cli.md": commands,
    "docs/decisions/README.md": decisions,
    "docs/reasons.md": reasons,
    "docs/settings.md": settings_page,
    "docs/views.md": views,
    "config/crawler.toml": settings_file,
}


def main() -> None:
    """Write every generated file."""
    for name, text in DOCUMENTS.items():
        (ROOT / name).write_text(text(), "utf-8")


if __name__ == "__main__":
    main()
