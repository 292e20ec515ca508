"""The command ``crawler demo``: serve the town, crawl it with the real engine, show the result and further commands."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from crawler.cli.console import PrintableConsole, console
from crawler.cli.layout import facts
from crawler.cli.output import tell
from crawler.cli.shared import STOPPED, cli, run_async
from crawler.cli.signals import Signals
from crawler.clock import SystemClock
from crawler.demo.town import COUNCIL
from crawler.demo.web import SETTINGS, DemoWeb
from crawler.engine.crawl import Crawl
from crawler.errors import Setting, StoreError, UsageError
from crawler.reasons import EndCode
from crawler.run.live_display import Watch, print_summary, summary
from crawler.session.crawl_session import crawl_session, run_to_end
from crawler.settings.loading import settings_from
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store, open_store
from crawler.store.location import is_url, shown
from crawler.store.statements import load_statements
from crawler.url import host_of

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.demo")
#: The sections of the result by their titles, each with the name of its statement.
_SECTIONS = {
    "A mirror, by its Host line": "mirrors",
    "Kept out by robots.txt": "forbidden",
    "Fetched, but not kept (noindex)": "not_kept",
    "Redirects": "redirects",
    "Failed": "failed",
    "Most linked to": "most_linked",
}


def _settings(db: Path) -> Settings:
    return settings_from({**SETTINGS, "store.db": str(db)}, source="demo")


async def run_demo(
    db: Path,
    console: PrintableConsole,
    *,
    live: bool,
    on_crawl: Callable[[Crawl], None] = lambda crawl: None,
) -> int:
    """Run the demonstration. Returns 0 if every promise to the town was kept, else 1. ``on_crawl`` gets the crawl."""
    await _begin_anew(db)
    clock = SystemClock()
    async with DemoWeb() as web:
        console.print(f"The town of Aldermere is served on 127.0.0.1:{web.port}; crawling it into {db} …")
        async with crawl_session(_settings(db), Seeds(web.seeds, {}), clock=clock) as (crawl, store):
            on_crawl(crawl)
            async with _watched(crawl, store, clock, console, str(db), live):
                end = await run_to_end(crawl, store, clock)
            result = summary(crawl, await store.counts(), end, str(db), clock.now())
            print_summary(result, console)
            await _show(store, web, console)
            _show_further(db, web, console)
            kept, missed = web.kept(), web.missed()
    return 0 if not any(k.requests for k in kept) and not missed else 1


@asynccontextmanager
async def _watched(
    crawl: Crawl, store: Store, clock: SystemClock, console: PrintableConsole, db: str, live: bool
) -> AsyncIterator[None]:
    if live and console.is_terminal:
        hint = "Ctrl-C stops; the next demo begins anew"
        async with Watch(crawl, store, clock, console, lambda: None, db, hint=hint).shown():
            yield
    else:
        yield


async def _begin_anew(db: Path) -> None:
    """Remove the store of an earlier demonstration.

    Raises :class:`UsageError` if ``db`` is another file, or if another demonstration uses it.
    """
    if not db.exists():
        return
    settings = _settings(db)
    try:
        async with existing_store(settings) as store:
            seeds = await store.seeds()
    except (StoreError, UsageError):
        raise UsageError(
            f"{db} is not the store of an earlier demonstration; choose another ", Setting("store.db")
        ) from None
    if not all(host_of(seed).endswith(".demo.test") for seed in seeds):
        raise UsageError(f"{db} holds a crawl that is not a demonstration; choose another ", Setting("store.db"))
    await (await open_store(settings)).close()  # fails while another demonstration runs
    tell(f"replaces the earlier demonstration in {db}")
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{db}{suffix}").unlink()


async def _show(store: Store, web: DemoWeb, console: PrintableConsole) -> None:
    for title, statement in _SECTIONS.items():
        rows = await store.query(_SQL[statement])
        _section(title, [(row["what"], row["detail"]) for row in rows], web.port, console)
    promises = [(f"{kept.requests} × {kept.site}", kept.promise) for kept in web.kept()]
    _section(
        "Requests for what sites asked to be left alone (by the sites' own logs)",
        promises,
        web.port,
        console,
    )
    if missed := web.missed():
        _section("Allowed pages that the crawl missed", [(url, "") for url in sorted(missed)], web.port, console)


def _section(title: str, rows: list[tuple[str, str]], port: int, console: PrintableConsole) -> None:
    console.print(Text(f"\n{title}", style="bold"))

    def short(text: str) -> str:
        return text.replace("http://", "").replace(f":{port}", "")

    console.print(facts(((short(left), short(right)) for left, right in rows), indent=2))


def _show_further(db: Path, web: DemoWeb, console: PrintableConsole) -> None:
    crawler = sys.argv[0] if Path(sys.argv[0]).stem == "crawler" else "crawler"  # the path that the user typed
    lines = [
        ("\nLook further", "bold"),
        (f"  {crawler} status --db {db}", ""),
        (f"  {crawler} why --db {db} {web.url(COUNCIL, '/private/')}", ""),
        (f"  sqlite3 {db} 'SELECT state, count(*) FROM urls GROUP BY state'", ""),
        ("\nCrawl your own seeds", "bold"),
        (f"  {crawler} run https://example.org/ --contact you@example.org --max-pages 100", ""),
    ]
    for line, style in lines:
        console.print(Text(line, style=style), soft_wrap=True)


@cli.command()
@click.option("--db", default="demo.db", show_default=True, metavar="PATH", help="The store; replaced at each start.")
@click.option("--no-progress", is_flag=True, hidden=True)
def demo(db: str, no_progress: bool) -> int:
    """Crawl a small built-in web on loopback with the real engine, and show the result."""
    if is_url(db):
        raise UsageError(f"--db {shown(db)}: the demo needs a file for its store; give a path")

    async def show() -> int:
        signals = Signals(EndCode.DEMO)
        code = await run_demo(Path(db), console, live=not no_progress, on_crawl=signals.stop_from_now_on)
        return STOPPED if signals.came else code

    return run_async(show())
