"""Carries out ``crawler export appendix`` and ``crawler audit``, whose options are of these commands."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from crawler.appendix.check import check_appendix, digest_of
from crawler.appendix.rendering import render
from crawler.appendix.write import AppendixOptions, write_appendix
from crawler.cli.console import console
from crawler.cli.on_store import on_store, show
from crawler.cli.output import tell
from crawler.cli.progress import progress_line
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.formatting import duration
from crawler.sampling import load

if TYPE_CHECKING:
    from crawler.store.sections import Store


def write(folder: Path, db: str, study: Path | None) -> None:
    """Write the appendix of the store ``db``, described by the file ``study``, and print what checks it."""
    options = AppendixOptions() if study is None else read_study(study)
    clock = SystemClock()
    began = clock.now()

    async def work(store: Store) -> str:
        with progress_line("reading the log") as say:
            return await write_appendix(store, folder, options, now=began, say=say)

    digest = on_store(db, work)
    tell(f"{folder}: a data appendix, in {duration(clock.now() - began)}; `crawler audit {folder}` checks it")
    tell(f"SHA-256 of {folder}/SHA256SUMS: {digest}")


def read_study(file: Path) -> AppendixOptions:
    """What a TOML file says of a study: ``title``, ``authors``, and a table ``variables`` of SQL expressions by name.

    Raises :class:`UsageError` for any other content.
    """
    try:
        said = tomllib.loads(file.read_text("utf-8"))
    except ValueError as error:  # no TOML, or no UTF-8
        raise UsageError(f"{file}: {error}") from None
    title, authors, variables = said.pop("title", ""), said.pop("authors", []), said.pop("variables", {})
    texts = [title, *(authors if isinstance(authors, list) else [None])]
    texts += variables.values() if isinstance(variables, dict) else [None]
    if said or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f'{file}: a study has title = "…", authors = ["…"] and a table [variables] with NAME = "SQL", nothing else'
        )
    own = (load("variables").variable_of(f"{name}={expression}") for name, expression in variables.items())
    return AppendixOptions(title=title, authors=tuple(authors), variables=dict(own))


def check(folder: Path, *, as_json: bool) -> int:
    """Check a folder, and print what was found. Returns the exit code, which is 1 if there is a fault."""
    checks, digest = check_appendix(folder), digest_of(folder)
    rows = [{"check": check.title, "judged": check.judged, "faults": check.faults} for check in checks]
    show(as_json, lambda: {"checks": rows, "sha256": digest}, lambda: render(checks, digest, console))
    return 1 if any(check.faults for check in checks) else 0
