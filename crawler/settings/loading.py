"""Reads settings from a TOML file, from a mapping in Python or from options of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from crawler.errors import ConfigError, Reference, Setting
from crawler.fields.kinds import WrongPart
from crawler.formatting import nearest
from crawler.settings.keys import KEYS, SECTIONS
from crawler.settings.settings import Settings

_HEADER = re.compile(r'\s*\[\[?\s*([\w."-]+)\s*\]')
_KEY = re.compile(r"\s*([\w.-]+)\s*=")
_NO_LINES: Mapping[str, int] = {}
#: The key that the tables ``[site."…"]`` are the value of.
_SITES = "politeness.sites"


def load_file(settings: Settings, path: Path) -> Settings:
    """``settings`` with the values of the TOML file ``path`` in place of theirs.

    Raises :class:`ConfigError` if the file is missing or no TOML, and for wrong keys, which it calls by their names in
    TOML whichever front end reads the file.
    """
    try:
        text = _text(path)
        return apply(settings, _toml(path, text), source=f"configuration {path}", lines=_lines(text))
    except ConfigError as error:
        raise ConfigError(str(error)) from None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"configuration {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"configuration {path}: not text in UTF-8; save it as UTF-8") from None


def _toml(path: Path, text: str) -> dict[str, object]:
    import tomllib  # here, because most commands read no file

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"configuration {path}: not TOML: {error}") from None


def _lines(text: str) -> dict[str, int]:
    """The line of each section and dotted key of a TOML file, from 1. For messages: the parser does not tell lines."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if found := _HEADER.match(line):
            section = f"{found[1]}."
            lines.setdefault(found[1], number)
        elif found := _KEY.match(line):
            lines.setdefault(section + found[1], number)
    return lines


def settings_from(values: Mapping[str, object], *, source: str) -> Settings:
    """The default settings with ``values`` in place of theirs; see :func:`apply`."""
    return apply(Settings(), values, source=source)


def apply(
    settings: Settings, values: Mapping[str, object], *, source: str, lines: Mapping[str, int] = _NO_LINES
) -> Settings:
    """``settings`` with ``values`` in place of theirs.

    ``values`` has dotted keys (``{"politeness.delay": 5}``) or tables of them, as in TOML. An error message begins with
    ``source``, and names the line of a key if ``lines`` has it. Raises :class:`ConfigError` that names every wrong key
    and its remedy; several are a line each.
    """
    wrong: list[tuple[str | Reference, ...]] = []
    sections: dict[str, dict[str, object]] = {}
    for name, value in _dotted(values):
        key = KEYS.get(name)
        if key is None or (isinstance(value, Mapping) and name not in ("fetch.resolve", _SITES)):
            wrong.append((_at(lines, name), _unknown(name, value)))
            continue
        try:
            sections.setdefault(key.section, {})[key.field] = key.kind.read(value)
        except WrongPart as error:
            table = error.part.rpartition(".")[0]
            wrong.append((_at(lines, error.part) or _at(lines, table), str(error)))
        except ValueError as error:
            wrong.append((_at(lines, name), Setting(name, value), f": {error}"))
    if wrong:
        between = "\n  " if len(wrong) > 1 else " "
        raise ConfigError(f"{source}:", *chain.from_iterable((between, *mistake) for mistake in wrong))
    return replace(settings, **{name: replace(getattr(settings, name), **new) for name, new in sections.items()})


def _at(lines: Mapping[str, int], name: str) -> str:
    return f"line {lines[name]}: " if name in lines else ""


def _dotted(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every value with its dotted key. A table in the place of a value is a value."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if name == "site":
            yield _SITES, value
        elif isinstance(value, Mapping) and name in SECTIONS:
            yield from _dotted(value, f"{name}.")
        else:
            yield name, value


def _unknown(name: str, value: object) -> str:
    """The mistake in a name that is no key, or in a table in the place of a value."""
    if name in KEYS:
        return f"{name} is a key, not a section: write {KEYS[name].word} = … in [{KEYS[name].section}]"
    if name in SECTIONS:
        return f"{name} is a section: write [{name}] and below it its keys ({_keys_of(name)})"
    if isinstance(value, Mapping):
        near = nearest(name, SECTIONS)
        return f"unknown section [{name}], " + (f"did you mean [{near[0]}]?" if near else _all_of(SECTIONS))
    by_word = {key.word: key.name for key in KEYS.values()}
    word = name.rpartition(".")[2]
    words = [word] if word in by_word else nearest(word, by_word)
    near = nearest(name, KEYS, alike=0.8) or [by_word[near_word] for near_word in words]
    if near:
        return f"unknown key {name!r}, did you mean {near[0]!r}?"
    section = name.partition(".")[0]
    known = f"the keys of [{section}] are {_keys_of(section)}" if section in SECTIONS else _all_of(SECTIONS)
    return f"unknown key {name!r}, {known}"


def _keys_of(section: str) -> str:
    return ", ".join(key.word for key in KEYS.values() if key.section == section)


def _all_of(sections: Iterable[str]) -> str:
    return "the sections are " + ", ".join(sections)
