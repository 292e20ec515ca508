"""The parts that the commands share: the group they belong to, the options on the store, and how errors end.

Loading this module is fast: it imports no settings, no store and no HTTP client. The help of `crawler` comes from a
table, and the module of a command is loaded when the command runs.
"""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import os
import sys
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import click

from crawler.cli.output import tell
from crawler.errors import CrawlerError, UsageError
from crawler.settings.log_records import LogFormat, LogLevel
from crawler.url import NotCrawlable, canonicalise
from crawler.version import VERSION

if TYPE_CHECKING:
    from crawler.settings.settings import Settings

Result = TypeVar("Result")

STOPPED = 3

_STDOUT, _STDERR = 1, 2


class CommandEntry(NamedTuple):
    """A command in the help of `crawler`: the module that defines it, and one sentence."""

    module: str
    about: str


#: The commands by group, in the order of the help.
COMMANDS: Mapping[str, Mapping[str, CommandEntry]] = {
    "Crawl": {
        "run": CommandEntry("run.commands", "Start a crawl, or go on with the one in the store."),
        "rounds": CommandEntry("rounds.commands", "Crawl in rounds over a dataset, beyond one database."),
        "plan": CommandEntry("run.commands", "Tell what a crawl would send, and how long it would take."),
        "demo": CommandEntry("demo.commands", "Crawl a small built-in web, and show the result."),
        "control": CommandEntry("run.commands", "Pause, resume or stop a crawl; block a site; add seeds."),
        "hint": CommandEntry("run.commands", "Tell the crawl that URLs have changed or are gone."),
        "identity": CommandEntry("identity.commands", "Sign the requests of a crawl; write the page about it."),
        "rup": CommandEntry("rup.commands", "Send and receive updates by the Remote Update Protocol."),
    },
    "Inspect": {
        "status": CommandEntry("inspect.commands", "Show what the store holds and what the crawl waits for."),
        "seeds": CommandEntry("inspect.commands", "Show what became of each seed, and the command that mends it."),
        "why": CommandEntry("inspect.commands", "Show what was decided about a URL, with the evidence."),
        "audit": CommandEntry("audit.commands", "Prove that no request broke robots.txt or the pace."),
        "dashboard": CommandEntry("dashboard.commands", "Watch and control a crawl in a browser."),
        "settings": CommandEntry("inspect.commands", "Show the settings of the crawl in a store."),
        "store": CommandEntry("maintenance.commands", "Take content out of a store, copy it, or share it."),
    },
    "Use the results": {
        "export": CommandEntry("export.commands", "Write the results to a file in one of several formats."),
        "report": CommandEntry("report.commands", "Write the crawl as one HTML page."),
        "refresh-search": CommandEntry("search.commands", "Update near-duplicates, ranks and the search index."),
        "index": CommandEntry("search.commands", "Build or update the search index."),
        "search": CommandEntry("search.commands", "Search the pages."),
        "mcp": CommandEntry("mcp.commands", "Let a program with a language model read the store; it only reads."),
        "serve-search": CommandEntry("search.commands", "Serve a search page for browsers and programs."),
        "rank": CommandEntry("rank.commands", "Rank pages and sites by the links between them."),
        "duplicates": CommandEntry("duplicates.commands", "Find pages with nearly the same text."),
        "sample": CommandEntry("sampling.commands", "Estimate the whole from a random sample."),
    },
    "Check without network": {
        "robots": CommandEntry("check.commands", "Show what a robots.txt file allows."),
        "page": CommandEntry("check.commands", "Show what an HTML page says of itself."),
    },
}


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the one of ``known`` that is spelled most like ``word``, if any."""
    from crawler.formatting import nearest

    near = nearest(word, known)
    return f" Did you mean {near[0]}?" if near else ""


class OneOf(click.Choice[str]):  # noqa: TID251  the one place
    """One of several words. The error for any other word names the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """``value``, if it is one of the words; click calls this."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = _did_you_mean(str(value), self.choices)
            raise click.BadParameter(f"{error.message.removesuffix('.')}.{near}", ctx, param) from None


class _Group(click.Group):
    """A group whose error for an unknown command names the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; click calls this."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(error.message + _did_you_mean(args[0], self.list_commands(ctx)), ctx) from None


class LazyGroup(_Group):
    """A group that loads the module of a command, by ``modules``, when the command is asked for."""

    modules: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands; click calls this."""
        return sorted(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command ``cmd_name``; click calls this."""
        if cmd_name in self.modules:
            import_module(f"crawler.{self.modules[cmd_name]}")
        return super().get_command(ctx, cmd_name)


class _Commands(LazyGroup):
    group_class = _Group
    modules = MappingProxyType({name: entry.module for entries in COMMANDS.values() for name, entry in entries.items()})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the help."""
        return list(self.modules)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by group; click calls this."""
        width = max(map(len, self.modules))
        for group, entries in COMMANDS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), entry.about) for name, entry in entries.items()])

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the arguments; click calls this. `--help` and `--version` print."""
        with _printing():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click calls this."""
        with _printing():
            return super().invoke(ctx)


@contextmanager
def _printing(code: int = 0) -> Iterator[None]:
    """Report an error of writing the output. If the reader has closed the pipe, as `| head` does, end with ``code``."""
    try:
        yield
    except BrokenPipeError:
        _abandon_output()
        raise click.exceptions.Exit(code) from None
    except OSError as error:
        _abandon_output()
        raise UsageError(f"{error.filename or 'standard output'}: {error.strerror or error}") from None


def _abandon_output() -> None:
    """Discard what is still buffered. Otherwise Python would report an error when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


#: The context of a command that is no part of another one.
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(cls=_Commands, context_settings=CONTEXT)
@click.version_option(VERSION, prog_name="crawler")
@click.option(
    "--log-level",
    "output_log_level",
    type=OneOf([level.value for level in LogLevel]),
    help="Write log records of this severity and above to standard error.",
)
@click.option(
    "--log-format",
    "output_log_format",
    type=OneOf([form.value for form in LogFormat]),
    help="Write log records as lines of text, or as one JSON object a line.",
)
def cli(output_log_level: str | None, output_log_format: str | None) -> None:
    """Crawl the web politely: obey what sites ask, lose nothing, and prove both."""
    if output_log_level is not None:
        from crawler.cli.logs import set_up_logging

        set_up_logging(LogLevel(output_log_level), LogFormat(output_log_format or LogFormat.TEXT))


def main(command: click.Command = cli, name: str = "crawler") -> NoReturn:
    """Run a command. An error that the crawler knows is one line on standard error, and sets the exit code."""
    logging.getLogger("crawler").handlers = [logging.NullHandler()]  # no records, unless the command shows them
    _open_standard_streams()
    sys.stdout, sys.stderr = _buffered(sys.stdout), _buffered(sys.stderr)
    code = 0
    try:
        code = command.main(prog_name=name, standalone_mode=False) or 0
        with _printing(code):
            sys.stdout.flush()
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = UsageError.exit_code
    except click.ClickException as error:
        tell(_advice(error))
        code = UsageError.exit_code
    except CrawlerError as error:
        from crawler.settings.keys import terminal_name

        tell(error.message(terminal_name))
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort, asyncio.CancelledError):
        tell("stopped")
        code = STOPPED
    gc.freeze()  # else Python searches all objects for cycles as it ends, an eighth of a short command's time
    sys.exit(code)


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device. A file that the command opens would else take their numbers.

    ``sys.stdin`` stays ``None`` then: a command that is to read from it says so.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(number)
    sys.stdout = sys.stdout or open(_STDOUT, "w", closefd=False)  # noqa: SIM115  it stays open
    sys.stderr = sys.stderr or open(_STDERR, "w", closefd=False)  # noqa: SIM115  as above


def _buffered(stream: Any) -> Any:
    """``stream`` with a buffer, and with escapes for the letters of a title that a terminal may lack.

    PYTHONUNBUFFERED takes the buffer away, which writes the rest after a short write: a long text into a pipe would
    lose its end if the process is stopped and continued meanwhile (SIGSTOP, SIGCONT).
    """
    if isinstance(stream, io.TextIOWrapper):
        if isinstance(stream.buffer, io.FileIO):
            stream = open(stream.fileno(), "w", 1, stream.encoding, closefd=False)  # noqa: SIM115  it stays open
        stream.reconfigure(errors="backslashreplace")
    return stream


def _advice(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    message = " ".join(error.format_message().split())  # click puts each choice into a line of its own
    if context is None:
        return message
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):  # all of them at once
        options = [each for each in context.command.params if isinstance(each, click.Option) and each.required]
        missing = [each.opts[0] for each in options if each.name not in context.params]
        message = f"Missing option{'s' * (len(missing) > 1)} {', '.join(missing)}"
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} See `{context.command_path} --help`."


db_option = click.option(
    "--db", default="crawl.db", show_default=True, metavar="PATH|URL", help="The store of the crawl."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


_MAX_BECAUSE = 1000


def _because(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not (value.strip() and value.isprintable() and len(value) <= _MAX_BECAUSE):
        raise UsageError(f"--because takes one line of at most {_MAX_BECAUSE:,} characters")
    return None if value is None else value.strip()


#: Why the operator does something to a site, for the commands that keep a crawl from it.
because_option = click.option(
    "--because", callback=_because, metavar="TEXT", help="Why, for example who asked for it. Reports show it."
)


def canonical(url: str) -> str:
    """The canonical form of a URL that the user gave. Raises :class:`UsageError` if there is none."""
    try:
        return canonicalise(url)
    except NotCrawlable as error:
        from crawler.settings.seeds import meant_by

        meant = meant_by(url)
        raise UsageError(f"{error}; did you mean {meant[0]} ?" if len(meant) == 1 else str(error)) from None


def store_at(db: str) -> Settings:
    """The default settings with the store ``db``. Raises :class:`UsageError` if ``db`` cannot name a store."""
    from crawler.settings.loading import apply
    from crawler.settings.settings import Settings

    return apply(Settings(), {"store.db": db}, source="command line")


def collect_garbage_seldom() -> None:
    """Run Python's cycle collector seldom.

    A crawl makes hundreds of objects for each page and almost no cycles. At the default thresholds the collector takes
    a tenth of the time.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


def run_async(work: Coroutine[Any, Any, Result]) -> Result:
    """Run ``work`` on uvloop, or on asyncio's own loop if uvloop is not installed; returns its result."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
