"""Checks a data appendix again, with nothing but the folder."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import file_digest, sha256
from math import isclose
from pathlib import Path
from typing import Any

from crawler.appendix.tables import EARLIER, VARIABLES
from crawler.errors import Argument, UsageError
from crawler.export.tables import unprotected
from crawler.formatting import many
from crawler.frontier.sample_design import Listed, Method, Sampler, SitesBy, draw_stratified
from crawler.sampling.hand_codes import read_codes

SUMS = "SHA256SUMS"

_Judged = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class AppendixCheck:
    """One requirement of an appendix: what was ``judged``, and the ``faults`` found, in sentences."""

    title: str
    judged: str
    faults: list[str]


def check_appendix(folder: Path) -> list[AppendixCheck]:
    """All checks of a folder. Raises :class:`UsageError` if it holds no appendix."""
    if not (folder / SUMS).is_file():
        raise UsageError(Argument("appendix", str(folder)), f": no data appendix (it has no {SUMS})")
    checks = []
    for title, check in _CHECKS.items():
        try:
            judged, faults = check(folder)
        except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            judged, faults = "not readable", [f"{type(error).__name__}: {error}"]
        checks.append(AppendixCheck(title, judged, faults))
    return checks


def files_listed_in(folder: Path) -> set[str] | None:
    """The files of the appendix in a folder, by its list; ``None`` if it holds no appendix."""
    try:
        return {SUMS, *_digests_listed_in(folder)}
    except (OSError, ValueError):
        return None


def _digests_listed_in(folder: Path) -> dict[str, str]:
    lines = (line.partition("  ") for line in (folder / SUMS).read_text("utf-8").splitlines())
    return {path: digest for digest, _, path in lines}


def _sums(folder: Path) -> _Judged:
    listed = _digests_listed_in(folder)
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    del there[SUMS]
    faults = [f"{path} is missing" for path in sorted(listed.keys() - there.keys())]
    faults += [f"{path} is not listed" for path in sorted(there.keys() - listed.keys())]
    faults += [
        f"{path} was changed" for path in sorted(listed.keys() & there.keys()) if sha256_of(there[path]) != listed[path]
    ]
    return many(len(listed), "file"), faults


def _audit(folder: Path) -> _Judged:
    result = json.loads((folder / "audit.json").read_text("utf-8"))
    faults = []
    if sha256_of(folder / "audit-records.jsonl") != result["sha256"]:
        faults.append("audit-records.jsonl has another digest than the audit")
    kinds: Counter[str] = Counter()
    with (folder / "audit-records.jsonl").open(encoding="utf-8", errors="surrogatepass") as records:
        for line in records:
            kinds[json.loads(line)[0]] += 1
    for kind, table in {"run": "runs", "robots": "robots_answers", "request": "requests", "order": "orders"}.items():
        rows = sum(1 for _ in _rows(folder / "tables" / f"{table}.csv"))
        if rows != kinds[kind]:
            faults.append(f"{table}.csv has {rows:,} rows, the audit judged {kinds[kind]:,}")
    sites = sum(int(row["requests"]) + int(row["unsent"]) for row in _rows(folder / "tables" / "sites.csv"))
    if sites != kinds["request"]:
        faults.append(f"sites.csv counts {sites:,} requests, the audit judged {kinds['request']:,}")
    if result["violations_found"]:
        faults.append(f"the audit found {many(result['violations_found'], 'violation')}")
    return many(kinds["request"], "request"), faults


def _robots(folder: Path) -> _Judged:
    versions = {row["version_sha256"] for row in _rows(folder / "tables" / "robots_versions.csv")} - {""}
    texts = {path.stem: path for path in (folder / "robots").glob("*.txt")}
    faults = [f"robots/{digest}.txt is missing" for digest in sorted(versions - texts.keys())]
    faults += [
        f"robots/{name}.txt has another digest" for name, path in sorted(texts.items()) if sha256_of(path) != name
    ]
    return many(len(versions), "text"), faults


def _sample(folder: Path) -> _Judged:
    designs = [row for row in _rows(folder / "tables" / "design.csv") if not row["discarded_at"]]
    if not designs:
        return "no sample", []
    (design,) = designs
    if design["method"] == Method.RANDOM_WALK:
        return "not judged: a random walk follows the links of the crawl", []
    frame = [Listed(row["url"], unprotected(row["stratum"])) for row in _rows(folder / "tables" / "frame.csv")]
    if not frame and design["method"] == Method.STRATIFIED:
        return "not judged: the list of seeds was not there any more", []
    if len(frame) != int(design["frame_size"]):
        return many(len(frame), "URL"), [f"the design names a frame of {design['frame_size']}"]
    size, seed, sites = int(design["size"]), int(design["seed"]), design["sites"]
    if design["method"] == Method.STRATIFIED:
        drawn = draw_stratified(frame, size, seed)
    else:
        sampler = Sampler(
            size,
            seed,
            share=float(design["share"]),
            sites=int(sites) if sites else None,
            sites_by=SitesBy(design["sites_by"]),
        )
        for each in frame:
            sampler.offer(each.url, each.stratum)
        drawn = list(sampler.drawn())
    rows = _rows(folder / "tables" / "draws.csv")
    kept = {
        (row["url"], unprotected(row["stratum"])): (float(row["probability"]), float(row["site_probability"]))
        for row in rows
    }
    repeated = {(each.url, each.stratum): (each.probability, each.site_probability) for each in drawn}
    faults, not_drawn = list[str](), (0.0, 0.0)
    for unit in sorted(kept.keys() | repeated.keys()):
        was, is_now = kept.get(unit, not_drawn), repeated.get(unit, not_drawn)
        if not all(isclose(a, b, rel_tol=1e-9) for a, b in zip(was, is_now, strict=True)):
            faults.append(f"{unit[0]} has the probabilities {was} in the draws, and {is_now} by the frame")
    return f"{many(len(kept), 'draw')} from {many(len(frame), 'URL')}", faults


def _estimates(folder: Path) -> _Judged:
    """Repeat the estimates, changes included, from the values in the table of draws."""
    path = folder / "estimates.json"
    estimates = json.loads(path.read_text("utf-8")) if path.exists() else {"variables": {}, "estimates": []}
    faults, judged = list[str](), 0
    draws = list(_rows(folder / "tables" / "draws.csv")) if estimates["estimates"] else []
    for name in estimates["variables"]:
        faults += _faults_of_codes(folder, name, draws)
    # An empty cell of CSV is a missing value too.
    with_empty = {figure["column"] for figure in estimates["estimates"] if figure["label"] == ""}
    for figure in (figure for figure in estimates["estimates"] if figure["column"] not in with_empty):
        known = ((_value(row, figure), float(row["weight"])) for row in draws if row["weight"])
        values = [(value, weight) for value, weight in known if value is not None]
        judged += 1
        if len(values) != figure["units"]:
            faults.append(f"{figure['what']} has {figure['units']:,} units, and draws.csv {len(values):,} values")
        elif values and not figure["missing"]:
            value = sum(value * weight for value, weight in values) / sum(weight for _, weight in values)
            if not isclose(value, figure["value"], rel_tol=1e-9, abs_tol=1e-9):
                faults.append(f"{figure['what']} is {figure['value']}, and draws.csv gives {value}")
    changes = sum(figure["is_change"] for figure in estimates["estimates"])
    return f"{many(judged, 'estimate')}, {many(changes, 'change')} among them", faults


def _value(row: Mapping[str, str], figure: Mapping[str, Any]) -> float | None:
    """The value that a draw has in an estimate, or its change; ``None`` if it has none."""
    names = [f"{EARLIER}{figure['column']}"] * figure["is_change"] + [figure["column"]]
    cells, label = [row[name] for name in names], figure["label"]
    if not all(cells):
        return None
    values = [float(unprotected(cell) == label if label is not None else cell) for cell in cells]
    return values[-1] - values[0] if figure["is_change"] else values[0]


def _faults_of_codes(folder: Path, name: str, draws: Iterable[Mapping[str, str]]) -> list[str]:
    """The draws whose value is not their hand code, if the variable has hand codes."""
    path = folder / VARIABLES / f"{name.removesuffix('?')}.csv"
    if not path.exists():
        return []
    codes = read_codes(path, name)
    pages = {row["url_id"]: row["url"] for row in _rows(folder / "tables" / "pages.csv")}
    faults = []
    for row in draws:
        code = codes.of(row["site"], row["url"], pages.get(row["page_id"], ""))
        cell: float | str | None = unprotected(row[name]) or None
        if cell is not None and isinstance(code, float):
            cell = float(cell)
        if cell is not None and cell != code:
            faults.append(f"{row['url']} has the value {cell} of {name}, and the hand codes say {code}")
    return faults


#: The checks by their titles. Each returns what it judged, and the faults that it found.
_CHECKS: Mapping[str, Callable[[Path], _Judged]] = {
    f"every file has the digest in {SUMS}": _sums,
    "the request log is that of the audit, which found no violation": _audit,
    "every robots.txt version has its text": _robots,
    "the values of the draws give the estimates": _estimates,
    "the draw, repeated from the frame, gives the same sample": _sample,
}


def digest_of(folder: Path) -> str:
    """The digest of the whole appendix: that of its list of digests."""
    return sha256((folder / SUMS).read_bytes()).hexdigest()


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file, strict=True)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
