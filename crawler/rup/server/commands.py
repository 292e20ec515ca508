"""The command of the server: ``rup serve``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from crawler.cli.output import tell
from crawler.cli.secrets import smtp_login
from crawler.cli.serving import host_and_port
from crawler.cli.shared import run_async
from crawler.cli.signals import Signals
from crawler.errors import requiring
from crawler.rup.commands import address_in, rup, span_in
from crawler.rup.protocol.units import read_unit


def _by(read: Callable[[str, str], Any]) -> Callable[[click.Context, click.Parameter, str], Any]:
    """A callback by which an option has the value that ``read`` makes of its name and its text."""
    return lambda _, option, text: text and read(option.opts[0], text)


def _units(_: str, text: str) -> tuple[str, ...]:
    return tuple(read_unit(unit) or unit.strip() for unit in text.split(",") if unit.strip())


@rup.command(no_args_is_help=True)
@click.option("--root", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The document tree.")
@click.option("--base-url", required=True, metavar="URL", help="The URL that serves its files.")
@click.option(
    "--listen",
    required=True,
    callback=_by(host_and_port),
    metavar="HOST:PORT",
    help="The address for /rupinfo.txt and /rup.",
)
@click.option(
    "--smtp", required=True, callback=_by(host_and_port), metavar="HOST:PORT", help="The mail server for reports."
)
@click.option(
    "--db", default="rup.db", show_default=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Registrations, modification log and mail queue.",
)  # fmt: skip
@click.option(
    "--sender", default="", callback=_by(address_in), metavar="ADDRESS",
    help="The sender of reports.  [default: rup@ and the host of the URL]",
)  # fmt: skip
@click.option(
    "--latencies", hidden=True, default="minute,hour,day,week,month", callback=_by(_units), show_default=True,
    metavar="UNITS", help="The latencies that robots may choose.",
)  # fmt: skip
@click.option(
    "--max-query-span", hidden=True, default="30-day", callback=_by(span_in), show_default=True, metavar="N-UNIT",
    help="How long the server keeps changes.",
)  # fmt: skip
@click.option(
    "--scan-every", "scan_every_s", hidden=True, default=60.0, show_default=True, type=click.FloatRange(min=0.1),
    metavar="S", help="Seconds between two scans of the tree.",
)  # fmt: skip
def serve(listen: tuple[str, int], **options: Any) -> None:
    """Report changes in a document tree to robots, by the Remote Update Protocol of 1998.

    Serves /rupinfo.txt and the CGI /rup; the site's own web server serves the documents (docs/rup-server.md). The
    server mails changes to registered robots. If the mail server requires a login, set CRAWLER_SMTP_USER and
    CRAWLER_SMTP_PASSWORD.
    """
    login = smtp_login()
    with requiring("updates", "`crawler rup serve`"):
        from crawler.rup.server.web import RupServer
        from crawler.rup.server.web import serve as serve_rup

    async def run() -> None:
        Signals()
        await serve_rup(RupServer(**options, login=login), *listen, tell)

    run_async(run())
