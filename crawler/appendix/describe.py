"""The files of a data appendix that describe the others: data package, citation, read me, software."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from crawler.appendix.check import sha256_of
from crawler.appendix.study import Study
from crawler.appendix.tables import Table
from crawler.formatting import many
from crawler.store.views import Column, ColumnType
from crawler.version import VERSION

_TYPES = {
    ColumnType.TEXT: "string",
    ColumnType.INTEGER: "integer",
    ColumnType.NUMBER: "number",
    ColumnType.TIME: "datetime",
    ColumnType.YES: "boolean",
    ColumnType.JSON: "string",
}
_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".txt": "text/plain",
    ".R": "text/plain",
    ".py": "text/x-python",
    ".cff": "text/yaml",
}
_DOI = re.compile(r"10\.[0-9]{4,9}/\S+")
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")

_README = """\
# {title}

This folder belongs to a study of the web. polite-crawler {version} wrote it on {date} from the store of a crawl.
`crawler audit DIR` checks it: every file against `SHA256SUMS`, the tables against `datapackage.json`, the
request log against the digest of the audit, and the draw of the sample against the frame.

{seeds}
| place | contents |
| --- | --- |
| `datapackage.json` | a description of all files and columns (Frictionless Data Package) |
| `codebook.csv` | the meaning of every column of every table |
| `tables/` | the tables, each as CSV and as Parquet |
| `robots/` | every robots.txt text that was in force, octet by octet, named by its SHA-256 |
| `audit.json`, `audit.md` | the result of the audit of every request, for programs and for readers |
| `audit-records.jsonl` | all that the audit judged; its SHA-256 is the digest of the audit |
| `METHODS.md` | a template for the sections on methods and results; complete what stands in brackets |
| `estimates.json` | the estimates from the sample, if there is one; `draws` has the values that they are from |
| `recipe.R`, `recipe.py` | programs that repeat estimates from `draws` with R's `survey` and Python's `svy` |
| `variables/` | the hand codes and the Python functions of the study's own variables, if there are any |
| `software.json` | the versions of the software |
| `CITATION.cff` | how to cite this data |
| `SHA256SUMS` | the digests of all other files, for `sha256sum -c` |
{faults}
Times are UTC: in ISO 8601 in CSV, timestamps in Parquet. An empty cell of CSV is a missing value or an
empty text; Parquet tells these apart. In CSV an apostrophe stands before a text that a spreadsheet would execute as a
formula (`=`, `+`, `-`, `@`); Parquet has the texts as they are.

| table | rows | contents |
| --- | ---: | --- |
{tables}

## To draw the sample again

Let the key of a URL be the first 8 octets, as a big-endian number, of the BLAKE2b hash (digest size 8) of the URL in
UTF-8, keyed with the seed as 16 octets, little-endian, two's complement. A uniform sample has, of each stratum of
`frame`, the `size` URLs with the smallest keys, but no more than `share` of them, rounded up. A stratified sample has
in all `size` URLs, as many of each stratum, or all that it has; a remainder goes to the first strata by name. If
`design` has `sites`, that many sites were drawn first: `docs/appendix.md` of the crawler says how, with test vectors.

## What this folder does not contain

The bodies and texts of pages, and whatever their owners asked not to keep (NOINDEX, `unavailable_after`). The request
log has addresses of pages and IP addresses of servers. Read them before you publish: an address may name a person.
"""


def software() -> dict[str, Any]:
    """The versions of the crawler, its libraries and Python; ``commit`` is ``None`` if the crawler is no checkout."""
    names = {found[0] for need in distribution_needs() if (found := _REQUIREMENT.match(need))}
    return {
        "crawler": VERSION,
        "commit": _commit(Path(__file__).resolve().parents[2]),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: known for name in sorted(names) if (known := _version(name)) is not None},
    }


def distribution_needs() -> list[str]:
    """The requirements of the installed crawler, extras included; none if it is not installed as a package."""
    try:
        return distribution("polite-crawler").requires or []
    except PackageNotFoundError:
        return []


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit(root: Path) -> str | None:
    """The commit that is checked out at ``root``, read from git's own files."""
    git = root / ".git"
    try:
        if git.is_file():  # a worktree
            git = root / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        common = git / (git / "commondir").read_text().strip() if (git / "commondir").exists() else git
        ref = head.removeprefix("ref: ")
        for folder in (git, common):
            if (folder / ref).exists():
                return (folder / ref).read_text().strip()
        packed = (common / "packed-refs").read_text().splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {ref}")), None)
    except OSError:
        return None


def readme(
    title: str,
    now: float,
    tables: Sequence[Table],
    counts: Mapping[str, int],
    violations: int,
    seeds: Sequence[str],
) -> str:
    """The text of ``README.md``; ``counts`` has the rows of each table, ``violations`` how many the audit found.

    ``seeds`` says in sentences where the seeds of the sample went.
    """
    rows = "\n".join(f"| `{table.name}` | {counts[table.name]:,} | {table.title} |" for table in tables)
    faults = f"\n**The audit found {many(violations, 'violation')}**; `audit.md` lists them.\n" if violations else ""
    seed_lines = "".join(f"{line}.\n" for line in seeds)
    return _README.format(title=title, version=VERSION, date=_date(now), tables=rows, faults=faults, seeds=seed_lines)


def citation(study: Study, now: float) -> str:
    """The text of ``CITATION.cff`` (Citation File Format 1.2.0). JSON texts are YAML texts."""
    lines = [
        "cff-version: 1.2.0",
        f"title: {_yaml(study.title)}",
        'message: "If you use this data, cite it as below."',
        "type: dataset",
        "authors:",
        *(f"  - name: {_yaml(author)}" for author in study.authors),
        f'date-released: "{_date(now)}"',
        f"abstract: {_yaml(f'Data appendix of a crawl with polite-crawler {VERSION}.')}",
    ]
    if study.licence:
        lines.append(f"license: {_yaml(study.licence)}")
    if study.identifier:
        kind = "doi" if _DOI.fullmatch(study.identifier) else "url" if "://" in study.identifier else "other"
        lines += ["identifiers:", f"  - type: {kind}", f"    value: {_yaml(study.identifier)}"]
    return "\n".join(lines) + "\n"


def _yaml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def data_package(folder: Path, study: Study, now: float, tables: Sequence[Table]) -> str:
    """The text of ``datapackage.json`` (Data Package 1.0): every file in ``folder``, with the columns of the tables."""
    of_path = {f"tables/{table.name}.csv": table for table in tables}
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    package = {
        "name": "crawl-appendix",
        "title": study.title,
        **({"id": study.identifier} if study.identifier else {}),
        **({"licenses": [{"name": study.licence}]} if study.licence else {}),
        "created": datetime.fromtimestamp(int(now), UTC).isoformat(),
        "resources": [_resource(folder, path, of_path.get(path)) for path in paths],
    }
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def _resource(folder: Path, path: str, table: Table | None) -> dict[str, Any]:
    file = folder / path
    resource: dict[str, Any] = {
        "name": re.sub(r"[^a-z0-9._-]+", "-", path.lower()) if table is None else table.name.replace("_", "-"),
        "path": path,
        "format": file.suffix.lstrip("."),
        "mediatype": _MEDIA_TYPES.get(file.suffix, "application/octet-stream"),
        "bytes": file.stat().st_size,
        "hash": f"sha256:{sha256_of(file)}",
    }
    if table is None:
        return resource | {"type": "file"}
    fields = [_field(name, column) for name, column in table.columns.items()]
    return resource | {
        "title": table.title,
        "profile": "tabular-data-resource",
        "type": "table",
        "encoding": "utf-8",
        "schema": {"fields": fields, "missingValues": [""]},
    }


def _field(name: str, column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {"name": name, "type": _TYPES[column.type], "description": column.meaning}
    if column.type is ColumnType.YES:
        field |= {"trueValues": ["1"], "falseValues": ["0"]}
    return field


def codebook_rows(tables: Sequence[Table]) -> list[tuple[str, str, str, str]]:
    """Every column: its table, its name, its type, its meaning."""
    return [
        (table.name, field["name"], field["type"], field["description"])
        for table in tables
        for field in (_field(name, column) for name, column in table.columns.items())
    ]


def _date(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).date().isoformat()
