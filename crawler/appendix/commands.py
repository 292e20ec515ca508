"""Carries out ``crawler export appendix`` and ``crawler audit``, whose options are of these commands."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from crawler.appendix.check import SUMS, AppendixCheck, check_appendix, digest_of
from crawler.appendix.study import Study
from crawler.appendix.write import Judge, write_appendix
from crawler.audit.run_audit import audit_snapshot
from crawler.cli.console import console
from crawler.cli.on_store import on_rows, show
from crawler.cli.output import tell
from crawler.cli.progress import progress_line
from crawler.cli.shared import store_at
from crawler.clock import SystemClock
from crawler.formatting import duration, many
from crawler.sampling import load
from crawler.settings.stores import existing_store
from crawler.store.location import names_dataset

if TYPE_CHECKING:
    from crawler.store.sections import Store

_MAX_FAULTS = 20  # of a check that are printed


def write(folder: Path, db: str, study_file: Path | None) -> None:
    """Write the appendix of the store ``db``, described by a file, and print what checks it."""
    study = Study() if study_file is None else Study.of(study_file)
    clock = SystemClock()
    began = clock.now()

    async def work(store: Store) -> str:
        judge: Judge = audit_snapshot
        if names_dataset(db):
            from crawler.audit.of_dataset import audit_dataset

            judge = audit_dataset
            await load("of_dataset").draw_if_sampled(store)
        async with AsyncExitStack() as opened:
            earlier = None
            if study.since:
                earlier = await opened.enter_async_context(existing_store(store_at(study.since)))
            with progress_line("reading the log") as say:
                return await write_appendix(store, folder, study, now=began, earlier=earlier, say=say, judge=judge)

    digest = on_rows(db, work)
    tell(f"{folder}: a data appendix, in {duration(clock.now() - began)}; `crawler audit {folder}` checks it")
    tell(f"SHA-256 of {folder}/SHA256SUMS: {digest}")


def check(folder: Path, *, as_json: bool) -> int:
    """Check a folder, and print what was found. Returns the exit code, which is 1 if there is a fault."""
    checks, digest = check_appendix(folder), digest_of(folder)
    rows = [{"check": check.title, "judged": check.judged, "faults": check.faults} for check in checks]
    show(as_json, lambda: {"checks": rows, "sha256": digest}, lambda: _print(checks, digest))
    return 1 if any(check.faults for check in checks) else 0


def _print(checks: Sequence[AppendixCheck], digest: str) -> None:
    for check in checks:
        style = "bold red" if check.faults else "green"
        console.print(Text(f"{'fault' if check.faults else 'ok':5} {check.title} ({check.judged})", style=style))
        for fault in check.faults[:_MAX_FAULTS]:
            console.print(f"      {fault}", soft_wrap=True)
        if (more := len(check.faults) - _MAX_FAULTS) > 0:
            console.print(f"      … and {many(more, 'more fault')}")
    console.print(f"SHA-256 of {SUMS}: {digest}", soft_wrap=True)
