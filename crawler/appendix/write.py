"""Writes the data appendix of a store to a folder."""

from __future__ import annotations

import csv
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crawler.appendix.check import SUMS, files_listed_in, sha256_of
from crawler.appendix.describe import codebook_rows, data_package, software
from crawler.appendix.recipes import recipe_python, recipe_r
from crawler.appendix.study import Study
from crawler.appendix.tables import DESIGN, DRAWS, EARLIER, QUANTITIES, Table, copy_of, tables_with, write_table
from crawler.atomic_files import AtomicFiles
from crawler.audit.log_reader import canonical_records, snapshot
from crawler.audit.run_audit import AuditResult, audit_snapshot
from crawler.audit.totals import site_totals
from crawler.cli.progress import Say
from crawler.errors import UsageError, require
from crawler.export.tables import PAGE_DIRECTIVES
from crawler.formatting import many
from crawler.frontier.sample_design import Method, read_list
from crawler.model import Missing
from crawler.page.directives import asked_of
from crawler.parquet import load_arrow
from crawler.reasons import ReasonCode
from crawler.sampling import load as load_sampling
from crawler.store.rows import SampleDraw
from crawler.store.statements import load_statements
from crawler.store.views import VIEWS, Column, ColumnType
from crawler.url import split

if TYPE_CHECKING:
    from crawler.sampling.survey import DrawnUrls
    from crawler.store.sections import Store

Judge = Callable[[Any, float, Callable[[int, int], None]], Awaitable[AuditResult]]
_SQL = load_statements("crawler.appendix")


async def write_appendix(
    store: Store,
    folder: Path,
    study: Study,
    *,
    now: float,
    earlier: Store | None = None,
    say: Say = lambda what, done=0, total=None: None,
    judge: Judge = audit_snapshot,
) -> str:
    """Write the data appendix of a store to a folder, whole or not at all. Returns the SHA-256 of ``SHA256SUMS``.

    The store must be opened read-only and for this call alone. The appendix shows one moment of it, and has the date of
    its last request: the same store gives the same appendix. Pages whose ``unavailable_after`` is before ``now``, in
    seconds since the epoch, are left out. ``earlier`` is a store with an earlier wave. An earlier appendix is replaced.
    ``say`` gets the progress, and ``judge`` audits the store. Raises :class:`UsageError` for a folder with other files,
    if there is no run, if a library is missing, and for variables without a sample or that cannot be computed.
    """
    load_arrow()
    variables = dict(load_sampling("variables").variable_of(f"{name}={text}") for name, text in study.variables.items())
    with AtomicFiles() as files:
        beside = files.folder(folder, files_listed_in(folder))
        for name in ("tables", "robots"):
            (beside / name).mkdir()
        async with snapshot(store):
            audit = await judge(store, now, partial(say, "requests judged"))
            if not audit.runs:
                raise UsageError(f"{store.name}: no run, so there is nothing to append")
            audit = replace(audit, at=audit.totals.last_at or audit.runs[-1].started_at)
            await _write_audit(store, beside, audit)
            draw = await store.samples.drawn()
            survey, own = None, dict[str, Column]()
            made: dict[str, Sequence[Sequence[Any]]] = {}
            if draw is not None:
                say("estimates from the sample")
                survey = await load_sampling("survey").survey(store, now, variables, earlier=earlier)
                own, made[DRAWS] = _draws(survey.drawn, variables)
                plain = survey.as_json()
                _write_json(beside / "estimates.json", plain | {"variables": dict(variables)})
                made["nonresponse"] = list(plain["outcomes"].items())
                made["estimates"] = list(load_sampling("publication").rows_of(survey))
                _copy_files(beside, variables)
                sources = {figure.what: figure.source for figure in survey.figures}
                (beside / "recipe.R").write_text(recipe_r(draw, sources), "utf-8")
                (beside / "recipe.py").write_text(recipe_python(draw, sources), "utf-8")
            elif variables:
                raise UsageError(f"{store.name}: no sample, so variables have no estimates; leave them out")
            tables, counts = tables_with(own), {}
            for number, table in enumerate(tables):
                say("tables written", number, len(tables))
                async with aclosing(_rows(store, table, now, draw, audit, made.get(table.name, ()))) as rows:
                    counts[table.name] = await write_table(beside / "tables", table, rows)
            async with aclosing(store.rows(_SQL["robots_texts"])) as texts:
                async for row in texts:
                    (beside / "robots" / f"{row.version_sha256}.txt").write_bytes(row.body)
            _write_json(beside / "software.json", software())
            with (beside / "codebook.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([("table", "column", "type", "meaning"), *codebook_rows(tables)])
            contacts = (run.settings.identity.contact for run in reversed(audit.runs))
            contact = next(filter(None, contacts), "unnamed")
            study = msgspec.structs.replace(
                study,
                title=study.title or f"Data appendix of a crawl of {many(audit.totals.sites, 'site')}",
                authors=study.authors or (contact,),
            )
            documents = require("export", "this export", "crawler.appendix.documents")
            documents.write_documents(beside, study, audit, survey, tables, counts)
            (beside / "datapackage.json").write_text(data_package(beside, study, audit.at, tables), "utf-8")
        return _write_sums(beside)


def _column(values: Sequence[Any]) -> tuple[ColumnType, list[float | str | None]]:
    """The values of a variable as a column: labels are texts, and other values numbers."""
    has_labels = any(isinstance(value, str) for value in values)
    kind, read = (ColumnType.TEXT, str) if has_labels else (ColumnType.NUMBER, float)
    return kind, [None if value is None or isinstance(value, Missing) else read(value) for value in values]


def _draws(drawn: DrawnUrls, variables: Mapping[str, Any]) -> tuple[dict[str, Column], list[tuple[Any, ...]]]:
    """The columns that the table of draws has beside its view, and their cells, row by row."""
    own, cells = dict(DESIGN), list[Sequence[float | str | None]]()
    for prefix, wave, quantities in (("", "", drawn.quantities), (EARLIER, "in the earlier wave: ", drawn.earlier)):
        for quantity in quantities:
            name, (kind, column) = f"{prefix}{quantity.name}", _column(quantity.values)
            if name in own or name in VIEWS["samples"]:
                raise UsageError(f"variable {name}: the table of draws has a column of that name; choose another")
            known = QUANTITIES.get(quantity.name) or Column(
                kind, f"a variable of the study, of the page that answered: {variables[quantity.name]}"
            )
            own[name] = known._replace(meaning=f"{wave}{known.meaning}")
            cells.append(column)
    nothing = (None,) * 5
    rows = zip(drawn.are_certain, drawn.sample.units(), *cells, strict=True)
    return own, [(int(certain), *(unit or nothing), *rest) for certain, unit, *rest in rows]


def _copy_files(folder: Path, variables: Mapping[str, Any]) -> None:
    """Copy the files that variables name to ``variables/NAME.csv`` and ``variables/NAME.py``."""
    for name, variable in variables.items():
        if (copy := copy_of(name, variable)) is not None:
            (folder / copy).parent.mkdir(exist_ok=True)
            (folder / copy).write_bytes(load_sampling("variables").file_of(variable).read_bytes())


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
    audit: AuditResult,
    made: Sequence[Sequence[Any]],
) -> AsyncGenerator[Sequence[Any], None]:
    """The rows of a table. ``made`` has those of a table without a view, or the columns ``table.own`` of each row."""
    if table.name in ("nonresponse", "estimates"):
        for row in made:
            yield row
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
        further = iter(made)
        async with aclosing(store.rows(sql)) as rows:
            async for row in rows:
                own = next(further) if table.own else ()
                if asked_of(row.page_directives).until > now:
                    yield (*row[:-1], *own)


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
