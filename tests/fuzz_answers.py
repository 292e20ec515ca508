"""Answers of a server, from the octets on the wire to the rows of the store: ``python -m tests.fuzz answers``.

Each case is drawn from its number, so it can be repeated alone. The octets go in pieces through the real protocol of a
connection, the fetcher, the decoders, the code of the parser process and the rules. There is no socket and no other
process. The outcomes are committed to an SQLite store.

What must hold for each answer:

- No part raises, none takes more than a second of processor time, and no request outlives its connection.
- The answer means the same however it is cut into pieces.
- The digest and the length that are stored are those of the body, and each link is a canonical URL.
- Each text of the outcome can be stored: it has no surrogate.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, cast

import brotli
import msgspec
from backports import zstd
from msgspec.structs import replace

from crawler.cli.shared import run_async
from crawler.clock import SystemClock
from crawler.engine.answers import Answers
from crawler.engine.crawl_policy import CrawlPolicy, RobotsPolicy
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.messages import Question, T
from crawler.engine.parser_pool import ReadingOptions
from crawler.engine.robots_messages import RobotsQuestion
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.fetch.connection import Connection, current_transfer
from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.model import Failed, Fetched, FetchResult, Kind, Purpose, Reading, Request
from crawler.reasons import ErrorKind
from crawler.robots.response import RobotsSettings, interpret
from crawler.store.rows import ClaimLimits, CommitBatch
from crawler.store.sqlite.store import SqliteStore
from crawler.url import canonicalise
from tests.reading import ReaderInProcess

SLOW_S = 1.0
#: Cases whose outcomes one commit has, and cases of one store.
_BATCH, _STORE = 100, 20_000
#: One case in so many is sent a second time, cut elsewhere.
_SENT_TWICE = 4
#: Above 64 small pieces, the connection would rest between them, in real time.
_MOST_PIECES = 12
_MAX_BODY = 20_000
#: No request waits: its server closes the connection.
_WAIT_S = 20.0
_READING = ReadingOptions("figbot", Reading.STRICT, resources=True)
_OPEN = Scope(ScopeSettings(ScopeMode.ANY), ())
_POLICY = CrawlPolicy(
    LimitSettings(),
    PolitenessSettings(),
    RequestSettings(max_body_bytes=_MAX_BODY),
    RobotsPolicy(RobotsSettings(Reading.STRICT), "figbot"),
    kept_headers=("*",),
)

# --- what a server sends --------------------------------------------------------------------------

_STATUSES = (
    *map(str, (201, 203, 204, 205, 206, 226, 299, 300, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 406)),
    *map(str, (410, 418, 429, 451, 500, 502, 503, 504, 520, 599, 600, 999)),
)
_BAD_STATUSES = ("100", "101", "103", "199", "000", "99", "2000", "abc", "")
_BAD_VERSIONS = ("HTTP/1.0", "HTTP/0.9", "HTTP/2", "HTTP/1.1.1", "http/1.1", "ICY", "")
_TYPES = (
    *["text/html"] * 8, "text/html; charset=utf-8", "text/html;charset=\"koi8-r\"", "text/html; charset=x-evil",
    "text/html; charset=utf-16", "application/xhtml+xml", "application/xml", "text/xml", "text/plain",
    "application/pdf",
    "application/json", "application/gzip", "image/png", "", "text/html; charset=\x80",
    "x" * 300, "text/html, text/plain",
)  # fmt: skip
_NAMES = (
    "Content-Length", "Content-Length", "Transfer-Encoding", "Content-Encoding", "Location", "Retry-After", "Link",
    "X-Robots-Tag", "ETag", "Last-Modified", "Date", "Expires", "Cache-Control", "Age", "Connection", "Keep-Alive",
    "Set-Cookie", "Server", "Vary", "Content-Language", "Content-Type", "TDM-Reservation", "TDM-Policy", "Refresh",
    "WWW-Authenticate", "cf-mitigated", "Via", "Trailer", "Upgrade", "X-\xff",
)  # fmt: skip
_TEXTS = (
    "0", "1", "-1", "5", "00005", "+5", "5, 5", "5,6", "99999999999999999999", "1e3", "chunked", "chunked, chunked",
    "gzip, chunked", "identity", "gzip", "x-gzip", "deflate", "br", "zstd", "gzip, gzip", "close", "keep-alive", "",
    "timeout=5", "/", "/next", "//b.test/", "http://b.test/x", "https://u:p@b.test/", "ftp://b.test/", "http://[", "#x",
    "javascript:alert(1)", "http://\xe9.test/", "/%zz", "..", "?", "</a>; rel=canonical", "<b>; rel=\"nofollow", "none",
    "noindex", "figbot: noindex, nofollow", "unavailable_after: 31 Dec 9999 23:59:59 GMT", "max-snippet: -1", "noai",
    "\"etag\"", "W/\"e\"", "Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 31 Feb 2026 24:60:61 GMT", "120", "-120", "1e9", "1",
    "challenge", "\x85", "\xad", "a\x7fb", "a\tb", "\xff" * 9, "x" * 5_000, "a; b=\"c", ",,,", "*", "ru, en", "en",
)  # fmt: skip
_MARKUP = (
    "<title>", "</title>", "<a href=", "<a href='/x'>", "</a>", "<base href=//b.test/>", "<meta name=robots content=",
    "noindex", "nofollow", "none", "<meta charset=utf-16>", "<meta http-equiv=refresh content='0;url=/r'>", "<!--",
    "-->",
    "<link rel=canonical href=/c>", "<link rel=alternate type=application/rss+xml href=/f>", "<noscript>", "<script>",
    "</script>", "<svg>", "<math>", "<template>", "<table>", "<select>", "<iframe src=//b.test/>", "<img src=/i>",
    "<p>",
    "&amp;", "&#xD800;", "&#0;", "&#x110000;", "\0", "\ud800", "\x80", "é", "\u202e", "\ufeff", "<html lang=ru>", "]]>",
    "<?xml version='1.0'?>", "<urlset>", "<url><loc>http://h0.test/p</loc></url>", "</urlset>", "<sitemapindex>",
    "<loc>",
    "<sitemap><loc>/s.xml</loc></sitemap>", "<rss>", "<item><link>/i</link></item>", "<feed>", "<entry>", "<lastmod>",
    "<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "User-agent: *\n", "Disallow: /\n", "Allow: /x\n",
    "Sitemap: http://h0.test/s\n",
    "Crawl-delay: 5\n", "User-agent: figbot\n", "Host: b.test\n", "\n", "\r\n", " ", "http://h0.test/a\n", "%PDF-1.7\n",
    "{\"price\": 1}", "Just a moment...", "cf-chl", "captcha", "/x", "'", ">",
    "word " * 40, "x" * 500, "mailto:a@b.test",
)  # fmt: skip
_CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, 1, mtime=0),
    "deflate": zlib.compress,
    "br": lambda body: brotli.compress(body, quality=1),
    "zstd": zstd.compress,
}
_OCTETS = (
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b": ",
    b"0\r\n\r\n",
    b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"\x1f\x8b\x08",
    b"\xff",
)


class Sent(NamedTuple):
    """The octets of an answer, the places at which they are cut, and whether the connection is reset behind them."""

    octets: bytes
    cuts: tuple[int, ...]
    is_reset: bool

    @property
    def pieces(self) -> Iterator[bytes]:
        return (self.octets[begin:end] for begin, end in zip((0, *self.cuts), (*self.cuts, None), strict=True))


def drawn(chance: random.Random) -> Sent:
    """An answer that a server might send."""
    body = _body(chance)
    statuses = chance.choices((("200",), _STATUSES, _BAD_STATUSES), (60, 38, 2))[0]
    version = "HTTP/1.1" if chance.random() < 0.97 else chance.choice(_BAD_VERSIONS)
    lines = [f"{version} {chance.choice(statuses)} {chance.choice(('OK', '', 'é', 'x' * 99))}"]
    if chance.random() < 0.9:
        lines.append(f"Content-Type: {chance.choice(_TYPES)}")
    if chance.random() < 0.25:
        coding = chance.choice([*_CODINGS])
        body = _CODINGS[coding](body)
        lines.append(f"Content-Encoding: {coding}")
    if chance.random() < 0.1:
        lines.append(f"Location: {chance.choice(_TEXTS)}")
    others = chance.choice((0, 0, 0, 0, 1, 1, 3))
    lines += [f"{chance.choice(_NAMES)}: {chance.choice(_TEXTS)}" for _ in range(others)]
    framing = chance.random()
    if framing < 0.6:
        lines.append(f"Content-Length: {len(body)}")
    elif framing < 0.8:
        lines.append("Transfer-Encoding: chunked")
        body = _chunked(chance, body)
    octets = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body
    if chance.random() < 0.1:
        octets = b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" * chance.choice((1, 2, 16, 17)) + octets
    for _ in range(chance.choice((0, 0, 0, 0, 0, 1, 3))):
        octets = _edited(chance, octets)
    return Sent(octets, _cuts(chance, octets), chance.random() < 0.1)


def _body(chance: random.Random) -> bytes:
    if chance.random() < 0.05:
        return chance.randbytes(chance.choice((1, 100, 3_000)))
    text = "".join(chance.choices(_MARKUP, k=chance.choice((0, 1, 3, 8, 20))))
    codec = chance.choice(("utf-8", "utf-8", "utf-8", "utf-16", "latin-1", "koi8-r"))
    body = text.encode(codec, "surrogatepass" if codec.startswith("utf") else "replace")
    return body * 400 if chance.random() < 0.01 else body


def _chunked(chance: random.Random, body: bytes) -> bytes:
    pieces, size = [], chance.choice((1, 7, 200, 5_000))
    for begin in range(0, min(len(body), 50 * size), size):
        chunk = body[begin : begin + size]
        extension = b";a=b" * (chance.random() < 0.1)
        pieces.append(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk))
    trailer = b"Trailer: x\r\n" * (chance.random() < 0.1)
    return b"".join([*pieces, b"0\r\n", trailer, b"\r\n"])


def _edited(chance: random.Random, octets: bytes) -> bytes:
    begin = chance.randint(0, len(octets)) if chance.random() < 0.5 else chance.randint(0, min(200, len(octets)))
    end = min(len(octets), begin + chance.choice((0, 1, 1, 8, 60, 10_000)))
    new = chance.choice((b"", octets[begin:end] * 2, chance.choice(_OCTETS), chance.randbytes(2)))
    return octets[:begin] + new + octets[end:]


def _cuts(chance: random.Random, octets: bytes) -> tuple[int, ...]:
    number = min(chance.choice((0, 0, 1, 2, _MOST_PIECES - 1)), len(octets))
    return tuple(sorted(chance.sample(range(len(octets) + 1), number)))


# --- the way of its octets to the fetcher ---------------------------------------------------------


class _Transport(asyncio.Transport):
    """Sends an answer, piece by piece, when a request is written. Then the connection ends."""

    def __init__(self, protocol: Connection, sent: Sent) -> None:
        super().__init__()
        self._protocol = protocol
        self._pieces = iter([*sent.pieces, None])
        self._is_reset = sent.is_reset
        self._is_paused = self._is_closed = self._is_sending = False

    def write(self, data: Any) -> None:
        self._go_on()

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._go_on()

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self._end(None)

    def abort(self) -> None:
        self._end(None)

    def _go_on(self) -> None:
        if not (self._is_sending or self._is_closed):
            self._is_sending = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._is_sending = False
        if self._is_paused or self._is_closed:
            return
        piece = next(self._pieces)
        if piece is None:
            if not self._is_reset:
                self._protocol.eof_received()
            self._end(ConnectionResetError() if self._is_reset else None)
        else:
            self._protocol.data_received(piece)
            self._go_on()

    def _end(self, error: Exception | None) -> None:
        if not self._is_closed:
            self._is_closed = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, error)


class _Open(NamedTuple):
    """The connection of one request, as the session sees it."""

    protocol: Connection

    def close(self) -> None:
        self.protocol.close()

    def release(self) -> None:
        self.protocol.close()


class _Connector:
    """Stands for the connector of the session: each request gets a new connection."""

    def __init__(self) -> None:
        self.sent = Sent(b"", (), is_reset=False)

    def reused(self, key: Any) -> _Open:
        current_transfer().key = key
        protocol = Connection(asyncio.get_running_loop())
        protocol.connection_made(_Transport(protocol, self.sent))
        return _Open(protocol)

    async def close(self) -> None:
        return None


class _Reader(ReaderInProcess):
    """Reads with the code of a parser process, without the process."""

    async def ask(self, question: Question[T], *, is_alone: bool = False) -> T:
        assert not isinstance(question, RobotsQuestion), "no fuzzed robots.txt is that large"
        return await super().ask(question)


class _Sites:
    """Stands for the robots.txt files of other sites, and for the way to a sitemap."""

    async def sitemaps_of(self, site: str) -> tuple[str, ...] | None:
        return None

    async def way_to(self, number: int) -> list[str]:
        return []


# --- what must hold -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """An answer, and the kind of the URL that was requested."""

    number: int
    kind: Kind | None  # None: a robots.txt
    sent: Sent
    again: tuple[int, ...] | None  # other places to cut it

    @classmethod
    def of(cls, seed: int, number: int) -> Case:
        chance = random.Random(f"{seed} {number}")
        kind = chance.choices((Kind.PAGE, None, Kind.SITEMAP, Kind.RUP), (70, 20, 7, 3))[0]
        sent = drawn(chance)
        again = _cuts(chance, sent.octets) if chance.randrange(_SENT_TWICE) == 0 else None
        return cls(number, kind, sent, again)


class Judge:
    """Sends cases to one fetcher, and checks what comes out."""

    def __init__(self, fetcher: HttpFetcher, connector: _Connector) -> None:
        self._fetcher = fetcher
        self._connector = connector
        sites = cast(Any, _Sites())
        self._answers = Answers(_POLICY, _OPEN, sites, sites, _Reader(_READING), None)

    async def outcome(self, case: Case, queued: Queued) -> Outcome | None:
        """The outcome of a case, which stands for the answer to ``queued``; ``None`` for a robots.txt."""
        queued = replace(queued, kind=case.kind or Kind.PAGE)
        request = self._answers.request(queued)
        if case.kind is None:
            request = Request(queued.url, Purpose.ROBOTS, max_bytes=_MAX_BODY, truncate=True, any_type=True)
        started = time.process_time()
        result = await self._sent(request, case.sent)
        outcome = None
        if case.kind is None:
            settings = _POLICY.robots.settings
            copy = interpret(result, settings=settings, previous=None, hops=0, seen=(), now=result.finished_at)
            _require_storable(copy)
        else:
            outcome = await self._answers.outcome(queued, *await self._answers.read(queued, result))
            _check(outcome, result)
        took_s = time.process_time() - started
        assert took_s < SLOW_S, f"{took_s:.1f} s of processor time"
        if case.again is not None:
            other = await self._sent(request, case.sent._replace(cuts=case.again))
            assert _meaning(result) == _meaning(other), "the answer means something else when it is cut elsewhere"
        return outcome

    async def _sent(self, request: Request, sent: Sent) -> FetchResult:
        self._connector.sent = sent
        result = await self._fetcher.fetch(request)
        if isinstance(result, Failed) and result.kind is ErrorKind.TIMEOUT:  # or the machine has slept
            result = await self._fetcher.fetch(request)
        assert not (isinstance(result, Failed) and result.kind is ErrorKind.FAULT), result.detail
        assert not (isinstance(result, Failed) and result.kind is ErrorKind.TIMEOUT), (
            "the request outlived its connection"
        )
        assert result.wire_bytes <= len(sent.octets)
        return result


def _meaning(result: FetchResult) -> tuple[object, ...]:
    body = None
    if isinstance(result, Fetched):
        body = result.body if result.unchecked is None else result.gzipped
    error = result.kind if isinstance(result, Failed) else None  # its words depend on what the parser has seen
    return type(result), result.status, result.headers, error, body


def _check(outcome: Outcome, result: FetchResult) -> None:
    _require_storable(outcome)
    assert str(outcome.reason.sentence)
    for link in outcome.links:
        assert canonicalise(link.url) == link.url, link.url
    for offer in outcome.offers:
        assert canonicalise(offer.url) == offer.url, offer.url
    if outcome.page is not None and isinstance(result, Fetched):
        facts = outcome.page.facts
        kept = None if outcome.page.body is None else outcome.page.body.decoded()
        for body in (kept, None if result.unchecked is not None else result.body):
            assert body is None or (facts.body_sha256, facts.body_bytes) == (sha256(body).digest(), len(body))


def _require_storable(value: object) -> None:
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, msgspec.Struct):
        _require_storable(msgspec.structs.astuple(value))
    elif is_dataclass(value):
        _require_storable([getattr(value, field.name) for field in fields(value)])
    elif isinstance(value, tuple | list | dict):
        for item in value.items() if isinstance(value, dict) else value:
            _require_storable(item)


@asynccontextmanager
async def judge() -> AsyncIterator[Judge]:
    """A judge with a fetcher whose connections need no socket."""
    settings = FetchSettings("FigBot/1", None, total_timeout_s=_WAIT_S, allow_private=True)
    fetcher = HttpFetcher(settings, SystemClock())
    async with fetcher:
        connector = _Connector()
        fetcher._session._connector = cast(Any, connector)
        yield Judge(fetcher, connector)


async def judged(seed: int, numbers: Sequence[int], folder: Path) -> list[str]:
    """Judge cases, and commit their outcomes to a new store in ``folder``. Returns what was wrong with which case."""
    store = await SqliteStore.open(folder / f"{numbers[0]}.db", PolitenessSettings())
    wrong: list[str] = []
    try:
        await store.start_run({}, 0.0)
        async with judge() as judging:
            for begin in range(0, len(numbers), _BATCH):
                batch = numbers[begin : begin + _BATCH]
                await store.add_seeds([(f"http://h{begin}.test/{number}", None) for number in batch])
                await store.prepare(None)
                claims = (
                    await store.commit(CommitBatch(time.time(), claim_limits=ClaimLimits(len(numbers), _BATCH)))
                ).claims
                queued = [one for claim in claims for one in claim.urls][: len(batch)]
                outcomes = []
                for number, one in zip(batch, queued, strict=True):
                    case = Case.of(seed, number)
                    try:
                        outcome = await judging.outcome(case, one)
                        outcomes += [] if outcome is None else [outcome]
                    except Exception as error:
                        wrong.append(f"case {number}: {error!r} for a {case.kind or 'robots.txt'} with {case.sent!r}")
                released = [claim.group_id for claim in claims]
                await store.commit(
                    CommitBatch(time.time(), claim_limits=ClaimLimits(0, 0), outcomes=outcomes, released=released)
                )
    finally:
        await store.close()
    return wrong


def fuzz(seed: int, number: int) -> int:
    """Judge so many cases of a seed, and print what is wrong. Returns 1 if anything is."""
    failed, started = False, time.process_time()
    for begin in range(0, number, _STORE):
        with tempfile.TemporaryDirectory() as folder:
            wrong = run_async(judged(seed, range(begin, min(number, begin + _STORE)), Path(folder)))
        rate = (begin + _STORE) / (time.process_time() - started)
        print(
            f"{min(number, begin + _STORE):,} answers, {rate:.0f} a second of processor time",
            *wrong,
            sep="\n",
            flush=True,
        )
        failed = failed or bool(wrong)
    return int(failed)
