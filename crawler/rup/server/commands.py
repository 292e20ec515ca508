"""The command of the server: ``rup serve``."""

from __future__ import annotations

from pathlib import Path

import click

from crawler.cli.output import tell
from crawler.cli.secrets import smtp_login
from crawler.cli.serving import host_and_port
from crawler.cli.shared import run_async
from crawler.cli.signals import Signals
from crawler.errors import requiring
from crawler.rup.commands import address_in, rup, span_in
from crawler.rup.protocol.units import read_unit


@rup.command(no_args_is_help=True)
@click.option("--root", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The document tree.")
@click.option("--base-url", required=True, metavar="URL", help="The URL that serves its files.")
@click.option("--listen", required=True, metavar="HOST:PORT", help="The address for /rupinfo.txt and /rup.")
@click.option("--smtp", required=True, metavar="HOST:PORT", help="The mail server for reports.")
@click.option(
    "--db", default="rup.db", show_default=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Registrations, modification log and mail queue.",
)  # fmt: skip
@click.option(
    "--sender", default="", metavar="ADDRESS", help="The sender of reports.  [default: rup@ and the host of the URL]"
)
@click.option(
    "--latencies", hidden=True, default="minute,hour,day,week,month", show_default=True, metavar="UNITS",
    help="The latencies that robots may choose.",
)  # fmt: skip
@click.option(
    "--max-query-span",
    hidden=True,
    default="30-day",
    show_default=True,
    metavar="N-UNIT",
    help="How long the server keeps changes.",
)
@click.option(
    "--scan-every", hidden=True, default=60.0, show_default=True, type=click.FloatRange(min=0.1), metavar="S",
    help="Seconds between two scans of the tree.",
)  # fmt: skip
def serve(
    root: Path,
    base_url: str,
    listen: str,
    smtp: str,
    db: Path,
    sender: str,
    latencies: str,
    max_query_span: str,
    scan_every: float,
) -> None:
    """Report changes in a document tree to robots, by the Remote Update Protocol of 1998.

    Serves /rupinfo.txt and the CGI /rup; the site's own web server serves the documents (docs/rup-server.md). The
    server mails changes to registered robots. If the mail server requires a login, set CRAWLER_SMTP_USER and
    CRAWLER_SMTP_PASSWORD.
    """
    user, password = smtp_login() or (None, None)
    with requiring("updates", "`crawler rup serve`"):
        from crawler.rup.server.web import RupServer
        from crawler.rup.server.web import serve as serve_rup
    server = RupServer(
        root=root,
        base_url=base_url,
        smtp=host_and_port("--smtp", smtp),
        db=db,
        sender=sender and address_in("--sender", sender),
        latencies=tuple(read_unit(unit) or unit.strip() for unit in latencies.split(",") if unit.strip()),
        max_query_span=span_in("--max-query-span", max_query_span),
        scan_every_s=scan_every,
        smtp_user=user,
        smtp_password=password,
    )
    host, port = host_and_port("--listen", listen)

    async def run() -> None:
        Signals()
        await serve_rup(server, host, port, tell)

    run_async(run())
