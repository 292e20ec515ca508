"""The server over HTTP: ``/rupinfo.txt`` and the CGI for robots. Needs the extra ``updates``.

:func:`serve` runs it alone; :func:`mount` adds it to an aiohttp application.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

from aiohttp import web

from crawler.cli.http_listener import listening
from crawler.clock import SystemClock
from crawler.engine.tasks import background_task
from crawler.errors import Argument, CrawlerError, UsageError
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.robots.records import product_token
from crawler.rup.mail.smtp import SmtpMailer
from crawler.rup.protocol.forms import MAX_FIELDS, BadForm, Leave, RupRequest, read_form, read_multipart
from crawler.rup.protocol.info import PATHS, write_info
from crawler.rup.protocol.server import MAX_QUERY_SPAN, Client, FormAnswer, ServerOffer
from crawler.rup.protocol.units import UNITS_S, Span
from crawler.rup.server.own_robots import OwnRobots
from crawler.rup.server.publish import Publisher
from crawler.rup.server.responder import Responder, client_network
from crawler.rup.server.store import RupStore
from crawler.rup.server.tree import Tree
from crawler.url import NotCrawlable, canonicalise, host_of, is_loopback, literal_address, split
from crawler.version import VERSION

#: The path of the CGI.
CGI_PATH = "/rup"

#: The most bytes of a form: 20 patterns of 200 characters, percent-encoded, take 12 kB.
MAX_FORM_BYTES = 16 * 1024

_LOG = logging.getLogger("crawler.rup")

_FORM_S = 30
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "application/octet-stream")
_TOO_LARGE = BadForm(400, f"a form of more than {MAX_FORM_BYTES} octets")


@dataclass(frozen=True, slots=True)
class RupServer:
    """The settings of a server. The login at the mail server, user and password, is not stored."""

    root: Path
    base_url: str  # the URL that serves the files of ``root``
    smtp: tuple[str, int]
    db: Path = Path("rup.db")
    sender: str = ""  # if empty: rup@ and the host of base_url
    latencies: tuple[str, ...] = ("minute", "hour", "day", "week", "month")
    max_query_span: Span = MAX_QUERY_SPAN
    scan_every_s: float = 60.0
    login: tuple[str, str] | None = field(default=None, repr=False)  # at the mail server


async def serve(server: RupServer, host: str, port: int, note: Callable[[str], None]) -> None:
    """Serve on an address until cancelled.

    Raises :class:`UsageError` if the settings or the address are unusable, and :class:`StoreError` if the store fails.
    """
    async with _responder(server, note) as responder:
        app = web.Application()
        _add_routes(app, lambda: responder)
        async with listening(app, host, port, grace_s=5.0) as bound:
            note(f"serving {responder.publisher.offer.url_base}rupinfo.txt on {_shown(*bound)}")
            await responder.publisher.run()


def mount(app: web.Application, server: RupServer, note: Callable[[str], None] = lambda text: None) -> None:
    """Add the server to an aiohttp application.

    It adds the routes ``/rupinfo.txt``, ``/rupinfo.tex`` and :data:`CGI_PATH`, and runs the background work from the
    start of the application to its end. To serve a domain of its own, mount it on a sub-application:
    ``app.add_domain("www.example.org", sub)``.
    """
    running: list[Responder] = []

    async def run(_: web.Application) -> AsyncIterator[None]:
        async with _responder(server, note) as responder:
            running.append(responder)
            async with background_task(responder.publisher.run(), lambda error: _tell_end(error, note)):
                yield
            running.clear()

    _add_routes(app, lambda: running[0])
    app.cleanup_ctx.append(run)


def _tell_end(error: BaseException, note: Callable[[str], None]) -> None:
    if isinstance(error, CrawlerError):
        note(f"the server makes no more reports: {error}")


@asynccontextmanager
async def _responder(server: RupServer, note: Callable[[str], None]) -> AsyncIterator[Responder]:
    offer, tree, clock = offer_of(server), _tree(server), SystemClock()
    fetching = FetchSettings(f"PoliteCrawler-rup/{VERSION}", None, allow_private=True)
    store = await RupStore.open(server.db)
    try:
        async with HttpFetcher(fetching, clock) as fetcher:
            robots_file = tree.root / "robots.txt" if tree.prefix == "/" else None
            robots = OwnRobots(split(offer.url_base).site, robots_file, fetcher, clock)
            mailer = SmtpMailer(*server.smtp, login=server.login)
            host = host_of(offer.url_base)
            sender = server.sender or f"rup@{host if literal_address(host) is None else 'localhost'}"
            yield Responder(Publisher(store, tree, offer, robots, mailer, clock, note, sender, server.scan_every_s))
    finally:
        await store.close()


def offer_of(server: RupServer) -> ServerOffer:
    """The offer of a server. Raises :class:`UsageError` for an invalid base URL and for unknown latencies."""
    try:
        base = canonicalise(server.base_url)
    except NotCrawlable as error:
        raise UsageError(Argument("base_url"), f": {error}") from None
    if "?" in base:
        raise UsageError(Argument("base_url"), f": {base} has a query; give the URL of the folder that serves the tree")
    unknown = [unit for unit in server.latencies if unit not in UNITS_S]
    if unknown or not server.latencies:
        raise UsageError(Argument("latencies"), f": {', '.join(unknown) or 'none'}; known are {', '.join(UNITS_S)}")
    site = split(base).site
    return ServerOffer(f"{site}{CGI_PATH}", f"{site}/", tuple(server.latencies), server.max_query_span)


def _tree(server: RupServer) -> Tree:
    root = server.root.resolve()
    if not root.is_dir():
        raise UsageError(Argument("root"), f": {server.root}: no such folder")
    if not os.access(root, os.R_OK | os.X_OK):
        raise UsageError(Argument("root"), f": {server.root}: cannot be read: Permission denied")
    db = server.db.resolve()
    ours = frozenset(Path(f"{db}{suffix}") for suffix in ("", "-wal", "-shm", "-journal", ".lock"))
    path = split(canonicalise(server.base_url)).path
    return Tree(root, path if path.endswith("/") else path + "/", ours)


def _shown(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


# --- requests ---------------------------------------------------------------------------------------


def _add_routes(app: web.Application, responder: Callable[[], Responder]) -> None:
    async def info(request: web.Request) -> web.Response:
        await responder().publisher.begun()
        text = write_info(responder().publisher.offer.info)
        return web.Response(text=text, content_type="text/plain", charset="us-ascii")

    async def cgi(request: web.Request) -> web.Response:
        await responder().publisher.begun()
        return await _cgi(responder(), request)

    for path in PATHS:
        app.router.add_get(path, info)
    app.router.add_get(CGI_PATH, cgi)
    app.router.add_post(CGI_PATH, cgi)


async def _cgi(responder: Responder, request: web.Request) -> web.Response:
    """Answer a request of a robot. The answer is always an HTML document, with a status of the draft, or 429 or 503."""
    client = Client(client_network(_address(request)), product_token(request.headers.get("User-Agent", "")[:200]))
    if (refusal := responder.refusal(client)) is not None:
        return _response(refusal)
    asked = await _asked(request)
    if isinstance(asked, Leave) and request.method != "POST":
        asked = Leave(asked.token)
    answer = await responder.answer(asked, client, may_change=request.method != "HEAD")
    facts = {"request": type(asked).__name__, "client": client.address, "status": answer.status}
    _LOG.info("%s from %s: %d", *facts.values(), extra=facts)
    return _response(answer)


def _response(answer: FormAnswer) -> web.Response:
    later = {} if answer.retry_after_s is None else {"Retry-After": str(answer.retry_after_s)}
    return web.Response(
        status=answer.status,
        text=answer.html,
        content_type="text/html",
        charset="utf-8",
        headers={"Cache-Control": "no-store", **later},
    )


def _address(request: web.Request) -> str:
    """The address of the client: as a proxy on this machine states it, or the address of the peer."""
    peer = request.remote or ""
    forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return forwarded if forwarded and is_loopback(peer) else peer


async def _asked(request: web.Request) -> RupRequest | BadForm:
    query = request.rel_url.raw_query_string
    if request.method != "POST":
        return _form(query)
    kind = request.content_type
    if request.can_read_body and kind not in _FORMS:
        return BadForm(400, f"a form must be {' or '.join(_FORMS[:2])}")
    body = bytearray()
    try:
        async with asyncio.timeout(_FORM_S):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > MAX_FORM_BYTES:
                    return _TOO_LARGE
    except TimeoutError:
        return BadForm(400, f"the form was not complete after {_FORM_S} s")
    if kind == "multipart/form-data":
        return _form(query, read_multipart(request.headers["Content-Type"], bytes(body)))
    return _form("&".join(filter(None, (query, body.decode("utf-8", "replace")))))


def _form(text: str, more: Sequence[tuple[str, str]] = ()) -> RupRequest | BadForm:
    if len(text) > MAX_FORM_BYTES:
        return _TOO_LARGE
    try:
        return read_form([*parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS), *more])
    except ValueError:
        return BadForm(400, f"a form of more than {MAX_FIELDS} fields")
