"""What a study says of itself for its data appendix, in a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec

from crawler.errors import Argument, UsageError


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    variables: Mapping[str, str] = {}

    @classmethod
    def of(cls, path: Path) -> Self:
        """The study that a TOML file describes. Raises :class:`UsageError` for a file that is none."""
        try:
            return msgspec.toml.decode(path.read_bytes(), type=cls)
        except (OSError, ValueError) as error:
            raise UsageError(Argument("study", str(path)), f": {error}") from None
