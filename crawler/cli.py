"""The commands. Each is thin: it reads options, calls one thing, prints, and picks the exit code."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console

from crawler.about import VERSION
from crawler.assemble import crawl_session, open_store, run_to_end
from crawler.clock import SystemClock
from crawler.config import KEYS, Settings, apply, read_file, settings_from
from crawler.demo.show import run_demo
from crawler.display import Watch, print_json, print_summary, summary, to_json
from crawler.errors import CrawlerError, UsageError
from crawler.loops.crawl import Crawl
from crawler.loops.reader import read_within
from crawler.model import Reading
from crawler.page.check import check_case
from crawler.report import audit as audit_report
from crawler.report import status as status_report
from crawler.report import why as why_report
from crawler.report.audit_report import write_report
from crawler.robots.check import check_case as check_robots_case
from crawler.robots.readings import read
from crawler.robots.records import product_token
from crawler.robots.text import parse
from crawler.seeds import BadSeed, read_seeds, require_good, seed_lines
from crawler.url import NotCrawlable, canonicalise, split

_STOPPED = 3


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


console = _Console(highlight=False)
if not console.is_terminal and "COLUMNS" not in os.environ:
    console.width = 1000  # a file or another program gets whole lines

#: Command-line options of ``crawler run`` -> the TOML key they set.
_RUN_KEYS = {
    "db": "store.db",
    "seeds_file": "seeds.file",
    "skip_bad_seeds": "seeds.skip_bad",
    "contact": "identity.contact",
    "agent": "identity.agent",
    "delay": "politeness.delay",
    "max_pages": "limits.max_pages",
    "max_pages_per_site": "limits.max_pages_per_site",
    "max_depth": "limits.max_depth",
    "max_time": "limits.max_time",
    "scope": "scope.mode",
    "include": "scope.include",
    "exclude": "scope.exclude",
    "concurrency": "limits.concurrency",
    "reading": "robots.reading",
    "resolve": "fetch.resolve",
    "allow_private": "fetch.allow_private",
    "json": "output.json",
}


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and flush here, where an output that cannot be written can still be told of."""
        try:
            code = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except BrokenPipeError:  # whoever read it has seen enough: `| head`
            _abandon_output()
            return 0
        except OSError as error:
            _abandon_output()
            raise UsageError(f"{error.filename or 'standard output'}: {error.strerror or error}") from None


def _abandon_output() -> None:
    """What is still buffered goes nowhere, or Python would complain of it as it ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="crawler")
def cli() -> None:
    """A polite web crawler: obeys what sites ask, loses nothing, and can prove both."""


def main() -> NoReturn:
    """Run a command; every error the crawler knows is one clear line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a title is no failure
    try:
        code = cli.main(prog_name="crawler", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = UsageError.exit_code
    except click.ClickException as error:
        _tell(_advice(error))
        code = UsageError.exit_code
    except CrawlerError as error:
        _tell(str(error))
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort, asyncio.CancelledError):
        code = _STOPPED
    sys.exit(code or 0)


def _tell(message: str) -> None:
    print(f"crawler: {message}", file=sys.stderr)


def _advice(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return error.format_message() + (f" See `{context.command_path} --help`." if context else "")


@cli.command()
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@click.option("--db", metavar="PATH", help="The store to crawl into.  [default: crawl.db]")
@click.option("--seeds", "seeds_file", metavar="FILE|-", help="Seeds from a file: a URL a line, # comments.")
@click.option("--skip-bad-seeds", is_flag=True, default=None, help="Pass over bad lines instead of stopping.")
@click.option("--config", metavar="FILE", type=click.Path(path_type=Path), help="A TOML file; options win over it.")
@click.option("--contact", metavar="URL|E-MAIL", help="Who crawls; needed outside loopback.")
@click.option("--agent", metavar="TOKEN", help="The product token robots.txt knows us by.  [default: PoliteCrawler]")
@click.option("--delay", type=float, metavar="S", help="Least pause between two requests to a site.  [default: 2]")
@click.option("--max-pages", type=int, metavar="N", help="Stop at N pages in the store; 0 is no limit.")
@click.option("--max-pages-per-site", type=int, metavar="N", help="Take at most N pages of a site; 0 is no limit.")
@click.option("--max-depth", type=int, metavar="N", help="Follow links N deep; seeds are at 0, -1 is no limit.")
@click.option("--max-time", type=float, metavar="S", help="Stop after S seconds; 0 is no limit.")
@click.option(
    "--scope", type=click.Choice(["host", "domain", "prefix", "any"]), help="How far to go.  [default: domain]"
)
@click.option("--include", multiple=True, metavar="REGEX", help="Take only URLs that match one of these (seeds apart).")
@click.option("--exclude", multiple=True, metavar="REGEX", help="Leave out URLs that match one of these.")
@click.option("--concurrency", type=int, metavar="N", help="Requests in flight in all.  [default: 64]")
@click.option("--workers", type=int, default=1, metavar="N", help="Processes; this version has one.")
@click.option(
    "--reading", type=click.Choice([r.value for r in Reading]), help="How robots.txt is read.  [default: strict]"
)
@click.option("--resolve", multiple=True, metavar="PATTERN=ADDRESS", help="Fix a name's address: '*.test=127.0.0.1'.")
@click.option("--allow-private", is_flag=True, default=None, help="Permit loopback and private addresses.")
@click.option("--no-progress", is_flag=True, help="No live display.")
@click.option("--json", is_flag=True, default=None, help="A JSON summary at the end.")
@click.pass_context
def run(
    ctx: click.Context, /, seeds: tuple[str, ...], config: Path | None, workers: int, no_progress: bool, **options: Any
) -> int:
    """Start a crawl from SEEDs, or go on with the one in the store."""
    if workers != 1:
        raise UsageError(f"--workers {workers}: this version crawls with one process; leave the option out")
    given = {_RUN_KEYS[name]: value for name, value in options.items() if value not in (None, ())}
    if no_progress:
        given["output.progress"] = False
    names = {_RUN_KEYS[option.name]: option.opts[0] for option in ctx.command.params if option.name in _RUN_KEYS}
    settings = settings_from(read_file(config), source=f"configuration {config}") if config else Settings()
    settings = apply(settings, given, source="command line", names=names)
    return _run_async(_run(settings, _read_all_seeds(seeds, settings)))


def _read_all_seeds(arguments: tuple[str, ...], settings: Settings) -> list[str]:
    """Seeds of the command line and of the seed file, canonical. Raises :class:`SeedError`."""
    seeds, bad = read_seeds(text.encode(errors="surrogatepass") for text in arguments)
    _require_good(bad, "command line", "seed", settings)
    source = settings.output.seeds
    if source:
        more, bad = _read_seed_file(source)
        _require_good(bad, f"--seeds {source}", "line", settings)
        if not more:
            raise UsageError(f"--seeds {source}: holds no URL")
        seeds += more
    return list(dict.fromkeys(seeds))


def _read_seed_file(source: str) -> tuple[list[str], list[BadSeed]]:
    try:
        if source != "-":
            with open(source, "rb") as file:
                return read_seeds(seed_lines(file))
        if sys.stdin is None:
            raise UsageError("--seeds -: standard input is closed")
        return read_seeds(seed_lines(sys.stdin.buffer))
    except OSError as error:
        raise UsageError(f"--seeds {source}: {error.strerror}") from None


def _require_good(bad: list[BadSeed], source: str, unit: str, settings: Settings) -> None:
    if settings.output.skip_bad_seeds:
        for seed in bad:
            _tell(f"{source}, {unit} {seed.line}: passed over: {seed.reason}")
    else:
        require_good(bad, source, unit=unit)


async def _run(settings: Settings, seeds: list[str]) -> int:
    clock, signals = SystemClock(), _Signals()
    async with crawl_session(settings, seeds, clock=clock) as (crawl, store):
        signals.stop_from_now_on(crawl)
        if settings.output.progress and console.is_terminal and not settings.output.json:
            async with Watch(crawl, store, clock, console, lambda: signals.came):
                ended_by = await run_to_end(crawl, store, clock)
        else:
            ended_by = await run_to_end(crawl, store, clock)
        result = summary(crawl, await store.counts(), ended_by, settings.output.db, clock.now())
    if settings.output.json:
        print_json(result)
    else:
        print_summary(result, console)
    return _STOPPED if signals.came else 0


class _Signals:
    """SIGINT and SIGTERM end the crawl in order, and the command at once where none has begun yet."""

    def __init__(self) -> None:
        self.came: str | None = None
        self._crawl: Crawl | None = None
        self._command = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number.name)

    def stop_from_now_on(self, crawl: Crawl) -> None:
        self._crawl = crawl

    def _stop(self, name: str) -> None:
        self.came = self.came or name
        if self._crawl is not None:
            self._crawl.stop(f"stopped by {self.came}; the same command goes on")
        elif self._command is not None:
            self._command.cancel()


@cli.command()
@click.option("--db", default="demo.db", show_default=True, metavar="PATH", help="The store; begun anew.")
@click.option("--no-progress", is_flag=True, help="No live display.")
@click.option("--json", "as_json", is_flag=True, help="A JSON summary at the end.")
def demo(db: str, no_progress: bool, as_json: bool) -> int:
    """Crawl a small built-in web on loopback with the real engine, and show what came out."""

    async def show() -> int:
        signals = _Signals()
        live = not no_progress and not as_json
        code = await run_demo(Path(db), console, live=live, as_json=as_json, on_crawl=signals.stop_from_now_on)
        return _STOPPED if signals.came else code

    return _run_async(show())


_db_option = click.option("--db", default="crawl.db", show_default=True, metavar="PATH", help="The store to read.")
_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@cli.command()
@_db_option
@_json_option
def status(db: str, as_json: bool) -> int:
    """What the store holds: per state, per site, what is waited for and until when."""

    async def look() -> int:
        store = await open_store(_reading_from(db), read_only=True)
        try:
            seen = await status_report.look(store, SystemClock().now())
        finally:
            await store.close()
        if as_json:
            print_json(status_report.as_json(seen))
        else:
            status_report.render(seen, console)
        return 0

    return _run_async(look())


@cli.command()
@click.argument("url")
@_db_option
@_json_option
def why(url: str, db: str, as_json: bool) -> int:
    """Everything known and decided about URL, with the evidence."""
    canonical = _canonical(url)

    async def explain() -> int:
        store = await open_store(_reading_from(db), read_only=True)
        try:
            token = Settings().identity.agent
            known = await why_report.explain(store, canonical, token=token, now=SystemClock().now())
        finally:
            await store.close()
        if as_json:
            print_json(known)
        else:
            why_report.render(known, console)
        return 0

    return _run_async(explain())


@cli.group()
def robots() -> None:
    """What a robots.txt says, without network."""


@robots.command("check")
@click.argument("urls", nargs=-1, metavar="URL...")
@click.option("--file", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The robots.txt.")
@click.option("--agent", default=Settings().identity.agent, show_default=True, metavar="TOKEN")
@click.option("--reading", type=click.Choice([r.value for r in Reading]), default="strict", show_default=True)
@click.option("--site", metavar="URL", help="The site it stands on, for Host lines.  [default: each URL's own]")
@click.option("--jsonl", is_flag=True, help="Cases from standard input, one JSON object a line; answers likewise.")
@_json_option
def robots_check(
    urls: tuple[str, ...], file: Path | None, agent: str, reading: str, site: str | None, jsonl: bool, as_json: bool
) -> int:
    """Verdicts of a robots.txt file on URLs, with the line that decides."""
    if jsonl:
        return _jsonl(check_robots_case)
    if file is None or not urls:
        raise UsageError("robots check needs --file ROBOTS.TXT and a URL, or --jsonl")
    body = file.read_bytes()
    for url in urls:
        own_site, path = split(_canonical(url))
        on = split(_canonical(site)).site if site else own_site
        verdict = read(parse(body), token=product_token(agent), reading=Reading(reading), site=on).verdict(path)
        if as_json:
            print_json({"url": url, **asdict(verdict)})
        else:
            rule = f"line {verdict.line}: {verdict.text.strip()}" if verdict.line else "no rule is about it"
            print(f"{'allowed' if verdict.allowed else 'forbidden':9}  {url}  {rule}  ({verdict.reading})")
    return 0


@cli.group()
def page() -> None:
    """What an HTML page says of itself, without network."""


@page.command("check")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--url", metavar="URL", help="The page's address.")
@click.option("--agent", default=Settings().identity.agent, show_default=True, metavar="TOKEN")
@click.option("--reading", type=click.Choice([r.value for r in Reading]), default="strict", show_default=True)
@click.option("--jsonl", is_flag=True, help="Cases from standard input, one JSON object a line; answers likewise.")
def page_check(file: Path | None, url: str | None, agent: str, reading: str, jsonl: bool) -> int:
    """What a page asks (index, follow), says (title, description …) and links to; as JSON."""
    if jsonl:
        return _jsonl(partial(check_case, read=read_within))
    if file is None or url is None:
        raise UsageError("page check needs --url URL and a FILE, or --jsonl")
    case = {"url": url, "html": file.read_text(errors="replace"), "agent": agent, "reading": reading}
    print(to_json(_checked(partial(check_case, read=read_within), case, str(file)), indent=1))
    return 0


def _jsonl(check: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """One answer per line of standard input, in order."""
    if sys.stdin is None:
        raise UsageError("--jsonl: standard input is closed")
    for number, line in enumerate(sys.stdin.buffer, 1):
        where = f"standard input, line {number}"
        try:
            case = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{where}: not JSON: {error}") from None
        if not isinstance(case, dict):
            raise UsageError(f"{where}: must be a JSON object")
        print_json(_checked(check, case, where))
    return 0


def _checked(check: Callable[[dict[str, Any]], dict[str, Any]], case: dict[str, Any], where: str) -> dict[str, Any]:
    try:
        return check(case)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None


def _canonical(url: str) -> str:
    try:
        return canonicalise(url)
    except NotCrawlable as error:
        raise UsageError(str(error)) from None


def _reading_from(db: str) -> Settings:
    return apply(Settings(), {"store.db": db}, source="command line")


def _run_async(work: Coroutine[Any, Any, int]) -> int:
    """Run on uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@cli.command()
@_db_option
@_json_option
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.md", help="A document of it.")
def audit(db: str, as_json: bool, report: Path | None) -> int:
    """Judge every request in the log anew by robots.txt and pace; 1 if any broke a rule."""

    async def judge() -> int:
        store = await open_store(_reading_from(db), read_only=True)
        try:
            found = await audit_report.audit(store, SystemClock().now())
        finally:
            await store.close()
        if report is not None:
            write_report(report, found)
        if as_json:
            print_json(audit_report.as_json(found))
        else:
            audit_report.render(found, console)
        return 1 if found.broken else 0

    return _run_async(judge())


assert set(_RUN_KEYS.values()) <= set(KEYS)
