"""How often each site was contacted and what is kept of it, as a CSV file."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from crawler.atomic_files import AtomicFiles
from crawler.audit.totals import SiteTotals, site_totals
from crawler.clock import exact_time

if TYPE_CHECKING:
    from crawler.store.sections import Store


async def write_sites(path: Path, store: Store) -> None:
    """Write a row for each site, whole or not at all; the columns are those of :class:`SiteTotals`.

    Raises :class:`crawler.errors.UsageError` if the file cannot be written.
    """
    with AtomicFiles() as files:
        file = files.open(path).file
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        rows = csv.writer(text)
        rows.writerow(SiteTotals._fields)
        async for site in site_totals(store):
            row = site._asdict()
            for name in ("first_at", "last_at"):
                row[name] = None if row[name] is None else exact_time(row[name])
            rows.writerow(row.values())  # no site name begins like a formula: it begins with its scheme
        text.detach()
