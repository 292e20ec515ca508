"""The files of a data appendix that describe the others to programs: data package, codebook, software."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from crawler.appendix.check import sha256_of
from crawler.appendix.study import Study
from crawler.appendix.tables import Table
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
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


def software() -> dict[str, Any]:
    """The versions of the crawler, its libraries and Python; none of libraries if it is not installed as a package."""
    try:
        needs = distribution("polite-crawler").requires or []
    except PackageNotFoundError:
        needs = []
    names = {found[0] for need in needs if (found := _REQUIREMENT.match(need))}
    return {
        "crawler": VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: known for name in sorted(names) if (known := _version(name)) is not None},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def data_package(folder: Path, study: Study, at: float, tables: Sequence[Table]) -> str:
    """The text of ``datapackage.json`` (Data Package 1.0): every file in ``folder``, with the columns of the tables."""
    of_path = {f"tables/{table.name}.csv": table for table in tables}
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    package = {
        "name": "crawl-appendix",
        "title": study.title,
        **({"id": study.identifier} if study.identifier else {}),
        **({"licenses": [{"name": study.licence}]} if study.licence else {}),
        "created": datetime.fromtimestamp(int(at), UTC).isoformat(),
        "resources": [_resource(folder, path, of_path.get(path)) for path in paths],
    }
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def _resource(folder: Path, path: str, table: Table | None) -> dict[str, Any]:
    file = folder / path
    resource: dict[str, Any] = {
        "name": re.sub(r"[^a-z0-9._-]+", "-", path.lower()) if table is None else table.name.replace("_", "-"),
        "path": path,
        "format": file.suffix.lstrip("."),
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
