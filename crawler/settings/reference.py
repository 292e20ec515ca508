"""Writes the reference of the settings from the table of keys: ``config/crawler.toml`` and ``docs/settings.md``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from crawler.settings.keys import KEYS, SECTIONS, Key

_WIDTH = 118
_HEAD = """\
Every setting of the crawler with its default. Use this file with `crawler run --config FILE`, and keep only the keys \
that you change: a missing key has its default. An option of the command line wins over the file.

A duration is a number of seconds, or a text such as "90 s", "15 min", "2 hours" or "7 d".

Generated from the fields of the settings by `python -m tests.docs`."""


def toml() -> str:
    """A TOML file that names every setting with its default and a comment."""
    return commented_toml(_HEAD, ((key, key.default) for key in KEYS.values()))


def commented_toml(head: str, values: Iterable[tuple[Key, Any]]) -> str:
    """A TOML file with comments that begins with ``head``. ``values`` are keys with their values, by section."""
    return "\n".join([*_comment(head), *_toml_lines(values)]) + "\n"


def _toml_lines(values: Iterable[tuple[Key, Any]]) -> Iterator[str]:
    for section, keys in groupby(values, key=lambda each: each[0].section):
        yield from ("", *_comment(SECTIONS[section]), f"[{section}]")
        for key, value in keys:
            option = f"({key.option})" if key.option else ""
            yield from _comment(" ".join(filter(None, (key.help, key.more, option))))
            yield f"{key.word} = {key.kind.toml(value)}"


def _comment(text: str) -> list[str]:
    lines = [line for paragraph in text.split("\n") for line in textwrap.wrap(paragraph, _WIDTH - 2) or [""]]
    return [f"# {line}".rstrip() for line in lines]


def markdown() -> str:
    """A page that describes every setting."""
    return "\n".join(_markdown_lines()) + "\n"


def _markdown_lines() -> Iterator[str]:
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
