"""The table of settings, read from the fields on which they are declared (:mod:`crawler.fields.declaration`).

The TOML reader, the options of ``crawler run`` with their help, the mapping that Python takes, ``config/crawler.toml``,
``docs/settings.md``, and the rule on which URLs a changed setting decides again are all made from this table.

To add a setting: add a field with :func:`~crawler.fields.declaration.setting`, then run ``python -m tests.docs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from crawler.errors import Action, Argument, Reference, Setting, has_value, python_name
from crawler.fields.declaration import Declared, Of, declared_in, sections_of
from crawler.reasons import ReasonCode
from crawler.settings.settings import Settings

_DEFAULTS = Settings()
_DECLARATIONS = sections_of(Settings)

#: The sections of the table, in the order of the reference, and what each is about.
SECTIONS: Mapping[str, str] = {name: section.about for name, section in _DECLARATIONS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(Declared):
    """A setting in its place: ``field`` is the field of ``section``."""

    section: str
    field: str

    @property
    def name(self) -> str:
        """The key in TOML and Python: the section, a dot, and a word."""
        return f"{self.section}.{self.word}"

    @property
    def path(self) -> str:
        """The section and the field, as the store records them with each run."""
        return f"{self.section}.{self.field}"

    @property
    def is_remembered(self) -> bool:
        """Whether the store remembers the value for the next run: not if it is about one run or process."""
        return self.of is not Of.RUN

    @property
    def default(self) -> Any:
        """The value that :class:`Settings` has by default."""
        return self.value(_DEFAULTS)

    def value(self, settings: Settings) -> Any:
        """The value of this setting in ``settings``."""
        return getattr(getattr(settings, self.section), self.field)


def _keys() -> Iterator[Key]:
    for name, section in _DECLARATIONS.items():
        for field, declared in declared_in(type(getattr(_DEFAULTS, name))):
            if declared is not None:
                known = {each.name: getattr(declared, each.name) for each in fields(Declared)}
                known["decides"] = (*section.decides, *declared.decides)
                yield Key(**known, section=name, field=field)


def _decided_by() -> dict[ReasonCode, tuple[str, ...]]:
    decided: dict[ReasonCode, tuple[str, ...]] = {}
    for name, section in _DECLARATIONS.items():
        for field, declared in declared_in(type(getattr(_DEFAULTS, name))):
            for code in (*section.decides, *(declared.decides if declared else ())):
                decided[code] = (*decided.get(code, ()), f"{name}.{field}")
    return decided


#: Every key by its name, in the order of the reference.
KEYS: Mapping[str, Key] = {key.name: key for key in _keys()}

#: The fields, as ``section.field``, that decide on the exclusions and failures with each code.
DECIDED_BY: Mapping[ReasonCode, tuple[str, ...]] = _decided_by()


def terminal_name(reference: Reference) -> str:
    """The name of ``reference`` on the command line: ``--max-pages 5``, ``--base-url x``, or a command.

    A setting without an option has the name that a TOML file gives it.
    """
    match reference:
        case Action(command=command):
            return f"`{command}`"
        case Setting(key, value) if KEYS[key].option:
            name = KEYS[key].option
        case Setting():
            return python_name(reference)
        case Argument(name, value):
            name = "--" + name.replace("_", "-")
    return f"{name} {str(value)[:100]}" if has_value(value) else name
