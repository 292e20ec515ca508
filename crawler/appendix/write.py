"""Writes the data appendix of a store to a folder."""

from __future__ import annotations

import csv
import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawler.appendix.check import SUMS, files_listed_in, sha256_of
from crawler.appendix.describe import citation, codebook_rows, data_package, readme, software
from crawler.appendix.tables import Table, tables_with, write_table
from crawler.atomic_files import AtomicFiles
from crawler.audit.log_reader import canonical_records, snapshot
from crawler.audit.run_audit import AuditResult, audit_snapshot
from crawler.audit.totals import site_totals
from crawler.cli.progress import Say
from crawler.errors import UsageError, require
from crawler.export.tables import PAGE_DIRECTIVES, load_arrow
from crawler.export.views import VIEWS, ColumnType
from crawler.formatting import many
from crawler.frontier.sample_design import Method, read_list
from crawler.model import Missing
from crawler.page.directives import asked_of
from crawler.reasons import ReasonCode
from crawler.sampling import load as load_sampling
from crawler.store.rows import SampleDraw
from crawler.store.statements import load_statements
from crawler.url import split

if TYPE_CHECKING:
    from crawler.store.sections import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendixOptions:
    """What a study adds to its appendix.

    ``authors`` stand in the citation; without any, the contact of the last run does. ``variables`` are SQL expressions
    over the view ``pages`` by their names: they have estimates, and a column in the table of draws.
    """

    title: str = ""
    authors: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


_SQL = load_statements("crawler.appendix")


async def write_appendix(
    store: Store,
    folder: Path,
    options: AppendixOptions,
    *,
    now: float,
    say: Say = lambda what, done=0, total=None: None,
) -> str:
    """Write the data appendix of a store to a folder, whole or not at all. Returns the SHA-256 of ``SHA256SUMS``.

    The store must be opened read-only and for this call alone; the appendix shows one moment of it. ``now`` is in
    seconds since the epoch. An earlier appendix is replaced. ``say`` gets the progress. Raises :class:`UsageError` for
    a folder with other files, if there is no run, if a library is missing, and for variables without a sample or that
    cannot be computed.
    """
    load_arrow()
    with AtomicFiles() as files:
        beside = files.folder(folder, files_listed_in(folder))
        (beside / "tables").mkdir()
        (beside / "robots").mkdir()
        async with snapshot(store):
            await _write(store, beside, options, now, say)
        return _write_sums(beside)


async def _write(
    store: Store,
    folder: Path,
    options: AppendixOptions,
    now: float,
    say: Say,
) -> None:
    title, variables = options.title, options.variables
    audit = await audit_snapshot(store, now, partial(say, "requests judged"))
    if not audit.runs:
        raise UsageError(f"{store.name}: no run, so there is nothing to append")
    await _write_audit(store, folder, audit)
    draw = await store.samples.drawn()
    outcomes: list[tuple[str, int]] = []
    seeds: list[str] = []
    values: dict[str, list[float | str | None]] = {}
    if draw is not None:
        say("estimates from the sample")
        values = await _values(store, variables, now)
        survey = await load_sampling("survey").survey(store, now, variables)
        _write_json(folder / "estimates.json", survey.as_json() | {"variables": dict(variables)})
        seeds = load_sampling("seed_groups").describe_seed_groups(survey.seeds)
        outcomes = list(survey.as_json()["outcomes"].items())
    elif variables:
        raise UsageError(f"{store.name}: no sample, so variables have no estimates; leave them out")
    kinds = {name: _kind(column) for name, column in values.items()}
    tables, counts = tables_with(variables, kinds), {}
    for number, table in enumerate(tables):
        say("tables written", number, len(tables))
        rows = _rows(store, table, now, draw, outcomes, audit, list(zip(*values.values(), strict=True)))
        async with aclosing(rows):
            counts[table.name] = await write_table(folder / "tables", table, rows)
    async with aclosing(store.rows(_SQL["robots_texts"])) as texts:
        async for row in texts:
            (folder / "robots" / f"{row.version_sha256}.txt").write_bytes(row.body)
    _write_json(folder / "software.json", software())
    with (folder / "codebook.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("table", "column", "type", "meaning"), *codebook_rows(tables)])
    title = title or f"Data appendix of a crawl of {many(audit.totals.sites, 'site')}"
    contact = next((run.contact for run in reversed(audit.runs) if run.contact), "unnamed")
    (folder / "CITATION.cff").write_text(citation(title, options.authors or (contact,), now), "utf-8")
    (folder / "README.md").write_text(readme(title, now, tables, counts, audit.violation_count, seeds), "utf-8")
    (folder / "datapackage.json").write_text(data_package(folder, title, now, tables), "utf-8")


async def _values(store: Store, variables: Mapping[str, str], now: float) -> dict[str, list[float | str | None]]:
    """The values of each variable, one for each draw in their order; labels are texts, and the others numbers."""
    taken = {*VIEWS["samples"]}.intersection(variables)
    if taken:
        raise UsageError(f"variable {min(taken)}: the table of draws has a column of that name; choose another")
    found: dict[str, list[float | str | None]] = {}
    for name, values in (await load_sampling("survey").values_of_draws(store, variables, now)).items():
        are_labels = any(isinstance(value, str) for value in values)
        found[name] = [
            None if value is None or isinstance(value, Missing) else str(value) if are_labels else float(value)
            for value in values
        ]
    return found


def _kind(column: Iterable[float | str | None]) -> ColumnType:
    return ColumnType.TEXT if any(isinstance(value, str) for value in column) else ColumnType.NUMBER


async def _write_audit(store: Store, folder: Path, audit: AuditResult) -> None:
    digest = sha256()
    with (folder / "audit-records.jsonl").open("wb") as records:
        async for piece in canonical_records(store):
            records.write(piece)
            digest.update(piece)
    assert digest.hexdigest() == audit.sha256, "the audit and its records show one moment of the store"
    _write_json(folder / "audit.json", audit.as_json())
    document = require("export", "this export", "crawler.audit.document").document(audit)
    (folder / "audit.md").write_text(document, "utf-8", errors="backslashreplace")


async def _rows(
    store: Store,
    table: Table,
    now: float,
    draw: SampleDraw | None,
    outcomes: Iterable[tuple[str, int]],
    audit: AuditResult,
    values: Sequence[tuple[Any, ...]],
) -> AsyncGenerator[Sequence[Any], None]:
    if table.name == "nonresponse":
        for outcome in outcomes:
            yield outcome
    elif table.name == "sites":
        async for site in site_totals(store):
            yield site
    elif table.name == "exclusions":
        for excluded in await store.query(_SQL["exclusions"]):
            code = excluded["reason_code"]
            yield code, _meaning(code), excluded["urls"], excluded["sites"]
    elif table.name == "frame":
        if draw is not None and draw.method == Method.STRATIFIED:
            for listed in _listed(audit, draw):
                yield listed.url, split(listed.url).site, listed.stratum, await store.find(listed.url)
        elif draw is not None:
            async with aclosing(store.rows(_SQL["frame"], {"per": draw.per})) as rows:
                async for row in rows:
                    yield row
    else:
        directives = PAGE_DIRECTIVES.get(table.view, "NULL")
        columns = ", ".join(name for name in table.columns if name not in table.own)
        sql = _SQL["rows"].format(columns=columns, directives=directives, view=table.view, order=table.order)
        further = iter(values)
        async with aclosing(store.rows(sql)) as rows:
            async for row in rows:
                if asked_of(row.page_directives).until > now:
                    yield (*row[:-1], *(next(further) if table.own else ()))


def _listed(audit: AuditResult, draw: SampleDraw) -> Iterable[Any]:
    """The list of seeds of a stratified sample, each URL once, if the file is where the last crawl found it."""
    for run in reversed(audit.runs):
        path = Path(run.settings.seeds.file)
        if not run.is_auxiliary and path.is_file():
            with path.open(encoding="utf-8", newline="") as file:
                listed, _ = read_list(file)
            first = {each.url: each for each in reversed(listed)}  # a URL counts in the stratum of its first row
            return first.values() if len(first) == draw.frame else ()
    return ()


def _meaning(reason_code: str) -> str:
    try:
        return ReasonCode(reason_code).meaning
    except ValueError:
        return ""


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8", errors="backslashreplace")


def _write_sums(folder: Path) -> str:
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    sums = "".join(f"{sha256_of(folder / path)}  {path}\n" for path in paths).encode()
    (folder / SUMS).write_bytes(sums)
    return sha256(sums).hexdigest()
