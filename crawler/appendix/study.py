"""What a study says of itself for its data appendix, in a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from crawler.errors import Argument, UsageError

_WANTED = {"authors": "a list of texts", "variables": "a table of texts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a study adds to its appendix. Every text may be empty.

    ``authors`` stand in the citation; without any, the contact of the last run does. ``licence`` is an SPDX identifier,
    ``identifier`` a DOI or another address of the published data. ``legal_basis`` and ``personal_data`` complete the
    paragraph on ethics. ``variables`` (name to expression, see :mod:`crawler.sampling.variables`) have estimates and a
    column in the table of draws. ``since`` is the store of an earlier wave.
    """

    title: str = ""
    authors: tuple[str, ...] = ()
    licence: str = ""
    identifier: str = ""
    legal_basis: str = ""
    personal_data: str = ""
    since: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> Self:
        """The study that a TOML file describes. Raises :class:`UsageError` for a file that is none."""
        try:
            content = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(Argument("study", str(path)), f": {error}") from None
        kinds: dict[str, type] = {each.name: str for each in fields(cls)} | {"authors": list, "variables": dict}
        for name, value in content.items():
            if name not in kinds:
                raise UsageError(Argument("study", str(path)), f": no key {name}; it may have {', '.join(kinds)}")
            if not isinstance(value, kinds[name]) or not all(isinstance(text, str) for text in _texts(value)):
                raise UsageError(Argument("study", str(path)), f": {name} must be {_WANTED.get(name, 'a text')}")
        if "authors" in content:
            content["authors"] = tuple(content["authors"])
        return cls(**content)


def _texts(value: Any) -> list[Any]:
    return [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
