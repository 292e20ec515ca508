"""What all commands share: the group they belong to, how errors end, the console."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import re
import sys
from collections.abc import Coroutine, Mapping
from importlib import import_module
from typing import IO, Any, NoReturn, cast

import click
from rich.console import Console

from crawler.cli.logs import set_up_logging
from crawler.errors import CrawlerError, UsageError
from crawler.settings.keys import terminal_name
from crawler.settings.loading import apply
from crawler.settings.settings import LogFormat, LogLevel, Settings
from crawler.url import NotCrawlable, canonicalise
from crawler.version import VERSION

STOPPED = 3

_MODULES = {
    "run": "run.commands",
    "demo": "demo.commands",
    "status": "inspect.commands",
    "why": "inspect.commands",
    "audit": "audit.commands",
    "control": "run.control_commands",
    "dashboard": "dashboard.commands",
    "robots": "inspect.check_commands",
    "page": "inspect.check_commands",
    "export": "export.commands",
    "index": "search.commands",
    "search": "search.commands",
    "rank": "rank.commands",
    "report": "report.commands",
    "store": "inspect.store_commands",
    "rup": "rup.commands",
    "hint": "run.hint_commands",
    "sample": "sampling.commands",
}


class _Trimmed(io.TextIOBase):
    """Standard output, as it is at the time, without the blanks at the ends of lines that tables are padded with."""

    def write(self, text: str) -> int:
        return sys.stdout.write(re.sub(r" +(?=\n)", "", text))

    def flush(self) -> None:
        stream = getattr(sys, "stdout", None)  # at the very end of the process there is none, nor a sys
        if stream is not None:
            stream.flush()


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


console = _Console(highlight=False)
if not console.is_terminal:
    console = _Console(highlight=False, file=cast(IO[str], _Trimmed()))
    if "COLUMNS" not in os.environ:
        console.width = 1000  # a file or another program gets whole lines


class LazyGroup(click.Group):
    """A group of commands; the module of each, by ``modules``, is loaded when the command is asked for."""

    modules: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.modules:
            import_module(f"crawler.{self.modules[cmd_name]}")
        return super().get_command(ctx, cmd_name)


class _Commands(LazyGroup):
    modules = _MODULES

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
    set_up_logging(LogLevel.OFF, LogFormat.TEXT)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a title is no failure
    try:
        code = cli.main(prog_name="crawler", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = UsageError.exit_code
    except click.ClickException as error:
        tell(_advice(error))
        code = UsageError.exit_code
    except CrawlerError as error:
        tell(error.told(terminal_name))
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort, asyncio.CancelledError):
        tell("stopped")
        code = STOPPED
    sys.exit(code or 0)


def tell(message: str) -> None:
    print(f"crawler: {message}", file=sys.stderr)


def _advice(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return error.format_message() + (f" See `{context.command_path} --help`." if context else "")


db_option = click.option("--db", default="crawl.db", show_default=True, metavar="PATH|URL", help="The store to read.")
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


def canonical(url: str) -> str:
    try:
        return canonicalise(url)
    except NotCrawlable as error:
        raise UsageError(str(error)) from None


def host_and_port(text: str) -> tuple[str, int] | None:
    """``HOST:PORT``, an IPv6 address in brackets, which are taken off; ``None`` for anything else."""
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or (":" in bare) is (bare == host):
        return None
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        return None
    return bare, int(port)


def store_at(db: str) -> Settings:
    return apply(Settings(), {"store.db": db}, source="command line")


def raise_file_limit() -> None:
    """As many open files as the system grants: every request in flight is one, idle connections are more."""
    try:
        import resource
    except ImportError:
        return  # no such limit on this system
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def collect_garbage_seldom() -> None:
    """For a long run: a crawl makes hundreds of objects for a page and next to no cycles, so that at Python's own
    thresholds a tenth of its time goes into looking for them."""

    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


def run_async(work: Coroutine[Any, Any, int]) -> int:
    """Run on uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
