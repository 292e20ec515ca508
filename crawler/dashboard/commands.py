"""The command ``crawler dashboard``."""

from __future__ import annotations

import os
import secrets
from functools import partial
from pathlib import Path

import click

from crawler.cli.serving import listen_option, serve
from crawler.cli.shared import cli, db_option, store_at
from crawler.clock import SystemClock
from crawler.dashboard.server import serving
from crawler.errors import UsageError

_TOKEN_VARIABLE = "CRAWLER_DASHBOARD_TOKEN"
_MIN_TOKEN_CHARS = 16  # the token alone protects the controls from the network


@cli.command()
@db_option
@listen_option("127.0.0.1:8787")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Require this token, or that in ${_TOKEN_VARIABLE}. If none is given, one is made for this run.",
)
def dashboard(db: str, listen: str, token_file: Path | None) -> None:
    """Show a running crawl in a browser, and control it: pause, resume, stop, block a site, search, why.

    It can be started before, during or after the crawl. Prometheus reads /metrics.
    """
    given = _token(token_file)
    token = given or secrets.token_urlsafe(24)
    query = "" if given else f"?token={token}"
    page = partial(serving, store_at(db), token=token, clock=SystemClock())
    serve(listen, page, db, "the dashboard; the crawl continues without it", query=query)


def _token(file: Path | None) -> str | None:
    """The given token, if any. Raises :class:`UsageError` if it is too short, or cannot be sent in a header."""
    if file is not None:
        source = f"--token-file {file}"
        try:
            token = file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{source}: {getattr(error, 'strerror', None) or 'not text in UTF-8'}") from None
    elif (token := os.environ.get(_TOKEN_VARIABLE, "")) != "":
        source = f"${_TOKEN_VARIABLE}"
    else:
        return None
    if len(token) < _MIN_TOKEN_CHARS or not all("!" <= sign <= "~" and sign not in '";,\\' for sign in token):
        raise UsageError(
            f"{source}: a token has {_MIN_TOKEN_CHARS} letters, digits or punctuation marks at least, and no blanks"
        )
    return token
