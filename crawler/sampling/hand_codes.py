"""Hand codes: values that people gave to pages or sites, in a CSV file, with the agreement of the coders.

The first row names the columns: ``url`` or ``site``, the name of the variable, and ``coder`` if there were several. The
first code of a page counts; those of further coders tell how reliable the codes are (K. Krippendorff, Content Analysis,
2004, chapter 11: alpha for nominal data). A page without a row is missing. A page with an empty code is outside the
population.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from crawler.errors import UsageError
from crawler.formatting import many
from crawler.model import MISSING, Missing
from crawler.settings.seeds import BadSeed, require_good
from crawler.url import NotCrawlable, canonicalise, split

Code = float | str | None


class Agreement(NamedTuple):
    """How far coders agree about the ``units`` that several of them coded.

    ``agreeing`` is the share of pairs of codes that are equal; ``alpha`` is ``None`` if all codes are equal.
    """

    units: int
    agreeing: float
    alpha: float | None


@dataclass(frozen=True, slots=True)
class HandCodes:
    """Codes by URL, or by site (``of_sites``). ``coders`` are their names, ``agreement`` is that of several."""

    file: str
    codes: Mapping[str, Code]
    of_sites: bool
    coders: Sequence[str]
    agreement: Agreement | None

    def of(self, site: str, *urls: str) -> Code | Missing:
        """The code of a page with some ``urls`` on a site: of the first URL that has one."""
        return next((self.codes[key] for key in ((site,) if self.of_sites else urls) if key in self.codes), MISSING)

    def describe(self, name: str) -> str:
        """The origin of the codes, in a sentence."""
        by = f" by {', '.join(self.coders)}" if self.coders else ""
        said = f"{name}: hand codes of {many(len(self.codes), 'site' if self.of_sites else 'URL')} in {self.file}{by}"
        if self.agreement is None:
            return said
        units, agreeing, alpha = self.agreement
        measured = "" if alpha is None else f", Krippendorff's alpha {alpha:.2f} (nominal)"
        return f"{said}; {units:,} coded by several, {100 * agreeing:.1f} % of pairs agree{measured}"


def read_codes(file: Path, name: str) -> HandCodes:
    """The codes of the variable ``name``. Raises :class:`UsageError`, which names the lines that are wrong."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            return _read(csv.DictReader(lines, strict=True), str(file), name)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"variable {name}: {file}: {error}") from None


def _read(rows: csv.DictReader[str], file: str, name: str) -> HandCodes:
    rows.fieldnames = head = [cell.strip() for cell in rows.fieldnames or ()]
    keys = [column for column in ("url", "site") if column in head]
    if len(keys) != 1 or name not in head:
        raise UsageError(f"variable {name}: {file}, line 1: name the columns url (or site), {name}, and coder if any")
    of_sites = keys == ["site"]
    given: defaultdict[str, dict[str, str]] = defaultdict(dict)
    bad: list[BadSeed] = []
    for row in rows:
        if not any(row.values()):
            continue
        try:
            if None in row.values():
                raise NotCrawlable("fewer columns than the first row")
            url = canonicalise(row[keys[0]].strip())
            key = split(url).site if of_sites else url
            who = row.get("coder", "").strip()
            if who in given[key]:
                raise NotCrawlable(f"{key} has a code{' by ' + who if who else ''} already")
            given[key][who] = row[name].strip()
        except NotCrawlable as error:
            bad.append(BadSeed(rows.line_num, str(error)))
    require_good(bad, f"variable {name}: {file}", "so no code is read")
    first = {key: next(iter(codes.values())) for key, codes in given.items()}
    are_numbers = all(_is_number(code) for code in first.values() if code)
    codes = {key: None if not code else float(code) if are_numbers else code for key, code in first.items()}
    coders = dict.fromkeys(who for found in given.values() for who in found if who)
    return HandCodes(file, codes, of_sites, list(coders), _agreement([[*found.values()] for found in given.values()]))


def _is_number(code: str) -> bool:
    try:
        return isfinite(float(code))
    except ValueError:
        return False


def _agreement(units: Iterable[Sequence[str]]) -> Agreement | None:
    several = [codes for codes in units if len(codes) > 1]
    if not several:
        return None
    pairs = unlike = 0
    observed = 0.0
    for codes in several:
        of_unit = len(codes) * (len(codes) - 1)
        differing = of_unit - sum(n * (n - 1) for n in Counter(codes).values())
        pairs, unlike, observed = pairs + of_unit, unlike + differing, observed + differing / (len(codes) - 1)
    all_codes = Counter(code for codes in several for code in codes)
    there = all_codes.total()
    expected = (there * (there - 1) - sum(n * (n - 1) for n in all_codes.values())) / (there - 1)
    return Agreement(len(several), 1 - unlike / pairs, 1 - observed / expected if expected else None)
