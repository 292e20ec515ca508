"""Declares settings: all that is known of a setting stands on its field.

Each section of the settings is a frozen dataclass beside the rules that read it, such as
:class:`~crawler.frontier.politeness.PolitenessSettings`. A field that :func:`setting` makes has a key in TOML and
Python, and may have an option. :mod:`crawler.settings.keys` walks the fields. A field without a declaration is a
constant: only tests give it another value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import Enum, auto
from typing import Any, TypeVar

from crawler.fields.kinds import ValueKind
from crawler.reasons import ReasonCode

T = TypeVar("T")
_DECLARED = "declared"


class Of(Enum):
    """What a setting belongs to."""

    CRAWL = auto()  # the store remembers it for the next run, and all workers have the same value
    WORKER = auto()  # the store remembers it, and each worker may have its own value
    RUN = auto()  # the store does not remember it, and each worker may have its own value


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting.

    ``word`` is the key within its section. ``help`` is one sentence, which the command line shows as well; ``more``
    adds what only the reference says. ``option`` is the option of ``crawler run``, if there is one. An option that
    begins with ``--no-`` turns a flag off. ``option_help`` is a shorter sentence for the command line. If the value
    changes, URLs whose exclusion or failure has one of the codes ``decides`` are judged again.
    """

    word: str
    kind: ValueKind
    help: str
    more: str = ""
    option: str = ""
    option_help: str = ""
    metavar: str = ""
    of: Of = Of.CRAWL
    decides: tuple[ReasonCode, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the settings: what it is about, and what each of its fields decides."""

    about: str
    decides: tuple[ReasonCode, ...] = ()


def setting(
    word: str,
    default: T,
    kind: ValueKind,
    help: str,
    more: str = "",
    *,
    option: str = "",
    option_help: str = "",
    metavar: str = "",
    of: Of = Of.CRAWL,
    decides: tuple[ReasonCode, ...] = (),
) -> T:
    """A field with the ``default`` and a :class:`Declared` of the other arguments."""
    declared = Declared(word, kind, help, more, option, option_help, metavar, of, decides)
    made: T = field(default=default, metadata={_DECLARED: declared})
    return made


def section(kind: type[T], about: str, decides: tuple[ReasonCode, ...] = ()) -> T:
    """A field that holds the section ``kind``, with a :class:`Section` of the other arguments."""
    made: T = field(default_factory=kind, metadata={_DECLARED: Section(about, decides)})
    return made


def sections_of(settings: type[Any]) -> dict[str, Section]:
    """The sections of a class of settings by the names of their fields."""
    return {each.name: each.metadata[_DECLARED] for each in fields(settings)}


def declared_in(section: type[Any]) -> Iterator[tuple[str, Declared | None]]:
    """Each field of a section with its declaration; ``None`` for a constant."""
    return ((each.name, each.metadata.get(_DECLARED)) for each in fields(section))
