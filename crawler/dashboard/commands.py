"""The command ``crawler dashboard``."""

from __future__ import annotations

import secrets
from functools import partial

from crawler.cli.secrets import secret
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
def dashboard(db: str, listen: str) -> None:
    """Show a running crawl in a browser, and control it: pause, resume, stop, block a site, search, why.

    It can be started before, during or after the crawl. Prometheus reads /metrics. Viewers need the token in
    CRAWLER_DASHBOARD_TOKEN, or in the file that CRAWLER_DASHBOARD_TOKEN_FILE names. If neither is set, one is made for
    this run.
    """
    given = _token()
    token = given or secrets.token_urlsafe(24)
    query = "" if given else f"?token={token}"
    page = partial(serving, store_at(db), token=token, clock=SystemClock())
    serve(listen, page, db, "the dashboard; the crawl continues without it", query=query)


def _token() -> str:
    """The given token, or "". Raises :class:`UsageError` if it is too short, or cannot be sent in a header."""
    token = secret(_TOKEN_VARIABLE)
    if not token:
        return ""
    if len(token) < _MIN_TOKEN_CHARS or not all("!" <= sign <= "~" and sign not in '";,\\' for sign in token):
        raise UsageError(
            f"{_TOKEN_VARIABLE}: a token has at least {_MIN_TOKEN_CHARS} letters, digits or punctuation marks"
        )
    return token
