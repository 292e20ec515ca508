"""The pool of parser processes: each document is answered once, and no document harms another."""

from __future__ import annotations

import asyncio
import errno
import gc
import gzip
import itertools
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from crawler import gunzip, model
from crawler.engine import body_memory, parser_pool, sitemap_messages
from crawler.engine.messages import pack_answer
from crawler.engine.parser_pool import (
    ParserFailed,
    ParserPool,
    ReadingOptions,
    default_parsers,
)
from crawler.engine.parser_queue import MAX_DOCUMENTS, Kind
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.robots_reading import read_robots
from crawler.engine.sitemap_messages import LIMITS, SitemapQuestion, question_about_sitemap
from crawler.errors import Fault
from crawler.model import Fetched, Link, Purpose, Reading, Request
from crawler.reasons import ErrorKind
from crawler.robots.response import RobotsSettings
from crawler.sitemaps.findings import SitemapKind
from tests.command import ROOT, forking_python
from tests.records import replace

OPTIONS = ReadingOptions("figtree", Reading.STRICT)
NESTED = b"<div>" * 100_000
#: Takes the process a tenth of a second or more, and stays far below its limits.
SLOW = b"<div>" * 5_000
#: A page whose process does what :func:`in_each_parser` says.
TRIGGER = b"<meta http-equiv=refresh content=5>"
PYTHON = sys.executable
#: For what happens in milliseconds unless the machine is busy.
PATIENCE_S = 120


def document(name: str, body: bytes = b"") -> Fetched:
    html = b"<title>%s</title>" % name.encode() + body
    return Fetched(f"http://{name}.example/", 0, 0, content_type="text/html", plain=html)


@pytest.fixture
async def pool(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ParserPool]:
    """A pool whose processes are forked."""
    monkeypatch.setattr(sys, "executable", str(forking_python()))
    async with ParserPool(OPTIONS) as made:
        yield made


@pytest.fixture
def started(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of the pool are started, not forked: SIGSTOP does not reach a forked one."""
    monkeypatch.setattr(sys, "executable", PYTHON)


def children(states: str = "RSDT") -> set[int]:
    """The child processes of this process that are in one of ``states`` (as ``proc(5)`` names them)."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # that process has ended meanwhile
            state, parent = file.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state in states:
                found.add(int(file.parent.name))
    return found


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something is the case."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110  the state of a process, of which no event tells
            await asyncio.sleep(0.01)


@pytest.fixture
def in_each_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that has every parser process run a program before it starts. No process is forked."""

    def run(program: str) -> None:
        monkeypatch.setattr(sys, "executable", PYTHON)
        (tmp_path / "sitecustomize.py").write_text(program)
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")

    return run


def on_trigger(expression: str) -> str:
    """A program for :func:`in_each_parser` that evaluates ``expression`` when the process reads :data:`TRIGGER`."""
    return f"import os\nimport crawler.page.tags\ncrawler.page.tags.refresh_target = lambda content: {expression}\n"


#: For :func:`on_trigger`: whether a number is that of an open file that can be written to.
IS_OPEN = """
def is_open(number):
    try:
        return os.fstat(number) and os.get_blocking(number) is not None and __import__("fcntl").fcntl(number, 3) & 3
    except OSError:
        return False
"""


async def test_a_page_is_read_as_it_was_received(pool: ParserPool) -> None:
    html = "<title>T</title><a href=/x rel=nofollow>é</a>".encode()
    packed = Fetched("http://a.test/", 0, 0, content_type="text/html", plain=None, gzipped=gzip.compress(html))
    facts = await pool.read(packed)
    assert (facts.title, facts.body_bytes, facts.charset) == ("T", len(html), "utf-8")
    assert facts.links == (Link("http://a.test/x", "é", "nofollow", False),)
    assert await pool.read(Fetched("http://a.test/", 0, 0, content_type="text/html", plain=html)) == facts


@pytest.mark.parametrize(
    ("body", "most", "kind"),
    [
        (b"no gzip at all", 100, ErrorKind.ENCODING),
        (gzip.compress(b"<p>cut short")[:-9], 100, ErrorKind.TRUNCATED),
        (gzip.compress(bytes(101)), 100, ErrorKind.TOO_LARGE),
        (gzip.compress(bytes(100)), 100, None),
        (gzip.compress(bytes(40)) + gzip.compress(bytes(60)), 100, None),
    ],
    ids=["none", "cut", "long", "whole", "members"],
)
async def test_a_body_in_gzip_is_checked(pool: ParserPool, body: bytes, most: int, kind: ErrorKind | None) -> None:
    unchecked = Fetched("http://a.test/", 0, 0, content_type="text/html", plain=None, gzipped=body, unchecked=most)
    facts = await pool.read(unchecked)
    if kind is None:
        assert (facts.broken, facts.body_bytes, facts.is_one_gzip) == (None, 100, body.count(b"\x1f\x8b") == 1)
    else:
        assert facts.broken is not None
        assert facts.broken.kind is kind


async def test_a_document_that_is_not_html_is_digested_and_read_by_its_headers(pool: ParserPool) -> None:
    headers = (("X-Robots-Tag", "noindex"),)
    facts = await pool.read(Fetched("http://a.test/", 0, 0, headers, content_type="text/plain", plain=b"<title>T"))
    assert (facts.index, facts.title, facts.body_bytes) == (False, None, 8)


async def test_a_document_that_was_answered_leaves_no_cycle_behind(pool: ParserPool) -> None:
    # The collector runs rarely: documents in cycles were 30 MB of the memory of a fast crawl.
    await pool.read(document("first"))
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for number in range(3):
            await pool.read(document(f"page{number}"))
        gc.collect()
        modules = [(thing, type(thing).__module__) for thing in gc.garbage]
        # Tests of the store in the same process may have left cycles. A pool has nothing of the store.
        kept = [thing for thing, of in modules if of.startswith("crawler.") and not of.startswith("crawler.store.")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert kept == []


async def test_a_hostile_page_is_unread_and_the_pages_behind_it_are_read(pool: ParserPool) -> None:
    names = [f"p{number}" for number in range(20)]
    reads = [pool.read(document(name, NESTED if name == "p3" else b"")) for name in names]
    facts = dict(zip(names, await asyncio.gather(*reads), strict=True))
    hostile = facts.pop("p3")
    assert (hostile.is_read, hostile.index, hostile.follow) == (False, False, False)
    assert hostile.note == "not parsed: the parser needed more than 0.7 s of processor time"
    assert hostile.body_bytes == len(NESTED) + len("<title>p3</title>")
    assert {name: each.title for name, each in facts.items()} == {name: name for name in facts}


async def test_a_process_whose_input_is_closed_is_sent_nothing_more(pool: ParserPool) -> None:
    """The pipe of a process that ends is closed before its end is known."""
    assert (await pool.read(document("first"))).title == "first"
    (parser,) = pool._parsers
    parser.pipe_connection_lost(0, BrokenPipeError())
    reading = asyncio.create_task(pool.read(document("next")))
    await asyncio.sleep(0)
    assert not parser.documents
    parser.kill()
    assert (await reading).title == "next"


async def test_a_process_whose_input_breaks_is_sent_nothing_more_from_that_moment(pool: ParserPool) -> None:
    assert (await pool.read(document("first"))).title == "first"
    (parser,) = pool._parsers
    cast("asyncio.WriteTransport", parser._stdin).abort()
    assert not parser.accepts(cast(Any, None)), "the loop has not told of the lost connection yet"
    parser.kill()
    assert (await pool.read(document("next"))).title == "next"


async def test_a_process_that_a_page_has_ended_does_not_keep_the_page(pool: ParserPool) -> None:
    # A transport of uvloop refers to its protocol when it is closed, too, and a crawl collects garbage seldom.
    pool.start()
    await pool.read(document("first"))
    (parser,) = pool._parsers
    assert not (await pool.read(document("deep", NESTED))).is_read
    assert parser not in pool._parsers
    assert not parser.documents


async def test_a_page_that_takes_too_much_memory_is_unread(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_pool, "MAX_CPU_S", 3600)
    facts = await pool.read(document("wide", b"<p>x" * 2_000_000))
    assert facts.note == "not parsed: the parser needed more than 256 MB of memory"
    assert (await pool.read(document("next"))).title == "next"


BOMB = gzip.compress(b"<urlset><url><loc>http://a.test/x</loc></url>".ljust(LIMITS.max_bytes + 1), 1)


def sitemap(body: bytes, *, is_coded: bool = False, content_type: str = "text/xml") -> SitemapQuestion:
    plain, gzipped = (None, body) if is_coded else (body, None)
    answer = Fetched("http://a.test/s", 0, 0, content_type=content_type, plain=plain, gzipped=gzipped)
    return question_about_sitemap(answer)


@pytest.mark.parametrize("is_coded", [True, False], ids=["content coding", "file in gzip"])
async def test_only_a_parser_process_decompresses_a_sitemap(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch, is_coded: bool
) -> None:
    """300 kB hold 50 MB."""

    def refuse(*_: object) -> None:
        raise AssertionError("decompressed in the main process")

    for module, name in ((gunzip, "member"), (gunzip, "gunzip"), (model, "gunzip"), (zlib, "decompressobj")):
        monkeypatch.setattr(module, name, refuse)
    facts = await pool.ask(sitemap(BOMB, is_coded=is_coded))
    assert [entry.url for entry in facts.sitemap.entries] == ["http://a.test/x"]
    assert facts.sitemap.truncated


async def test_a_sitemap_that_is_a_wall_or_broken_says_so(pool: ParserPool) -> None:
    wall = b"<script>window._cf_chl_opt={};a.src='/cdn-cgi/challenge-platform/h/b/orchestrate/x/v1'</script>"
    assert (await pool.ask(sitemap(wall, content_type="text/html"))).wall.startswith("Cloudflare")
    broken = (await pool.ask(sitemap(BOMB[:100], is_coded=True))).broken
    assert broken is not None
    assert broken.kind is ErrorKind.TRUNCATED


async def test_a_sitemap_that_exceeds_the_limits_is_unread(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap_messages, "MAX_CPU_S", 0.01)
    facts = await pool.ask(sitemap(b"http://a.test/\n" * 200_000))
    assert facts.sitemap.kind is SitemapKind.UNKNOWN
    assert facts.sitemap.notes == ("not read: the parser needed more than 0.01 s of processor time",)
    assert facts.body_sha256


def robots(body: bytes, known_hosts: tuple[str, ...] = (), max_cpu_s: float = 10.0) -> RobotsQuestion:
    site = "http://a.example"
    max_bytes = RobotsSettings().max_bytes
    return RobotsQuestion(
        max_cpu_s, f"{site}/robots.txt", body, site, "figtree", "strict", known_hosts, None, max_bytes
    )


@pytest.mark.parametrize(
    "line",
    [
        b"Disallow: /*%d*x$\nAllow: /%d\n",
        b"disalow: /caf\xc3\xa9\xe9\xe2\x80\x8b%d?%d\nSitemap: /map\n",
        b"Mobile-agent-server: /%d http://b.example:%d\n",
        b"Content-Usage: /%d train-ai=n\nContent-Signal: search=%d\nLicense: http://l.example/\nRobots-Tag: noindex\n",
        b"Crawl-delay: %d\nHost: intranet\n# %d\n",
    ],
)
async def test_the_rules_of_a_file_are_those_of_its_reading_here(pool: ParserPool, line: bytes) -> None:
    body = b"User-agent: *\n" + b"".join(line.replace(b"%d", str(n).encode()) for n in range(2_000))
    question = robots(body, ("intra*",))
    there, here = await pool.ask(question), read_robots(question)
    assert replace(there, rule_sets=()) == replace(here, rule_sets=())
    assert there.size == here.size
    paths = ("/", "/7", "/3x4x", "/caf%C3%A9%E912?12", "/robots.txt")
    assert [there.verdict(path) for path in paths] == [here.verdict(path) for path in paths]


@pytest.mark.parametrize(
    ("rule", "rules", "max_cpu_s", "why"),
    [
        (b"Disallow: /%x\n", 20_000, 0.05, "the parser needed more than 0.05 s of processor time"),
        (b"Disallow: /%x\n", 130_000, 100.0, "more than 250,000 rules"),
    ],
)
async def test_a_robots_txt_beyond_the_limits_closes_its_site(
    pool: ParserPool, rule: bytes, rules: int, max_cpu_s: float, why: str
) -> None:
    body = b"User-agent: *\n" + b"".join(rule.replace(b"%x", b"%x" % n) for n in range(rules))
    reading, page = asyncio.create_task(pool.ask(robots(body, max_cpu_s=max_cpu_s))), document("b")
    assert (await pool.read(page)).title == "b"
    found = await reading
    assert found.unread == why
    verdict = found.verdict("/a")
    assert (verdict.allowed, verdict.text) == (False, f"{why} (Disallow: / is implied)")
    assert found.verdict("/robots.txt").allowed


async def test_a_slow_robots_txt_does_not_make_the_pages_of_its_domain_slow(pool: ParserPool) -> None:
    await pool.ask(robots(b"User-agent: *\n" + b"Disallow: /x\n" * 30_000))
    assert pool._queue.kind("a.example") is Kind.UNKNOWN
    assert pool.has_room("a.example")


@pytest.mark.parametrize("name", ["system", "__import__", "rfc_form.__globals__", 7])
def test_an_answer_names_nothing_but_parts_of_rules(name: object) -> None:
    question = robots(b"User-agent: *\nDisallow: /a")
    rules = msgspec.msgpack.decode(pack_answer(question.read()))
    assert rules["rule_sets"][0]["form"] == "draft"
    rules["rule_sets"][0]["form"] = name
    with pytest.raises(msgspec.DecodeError):
        question.unpack(msgspec.msgpack.encode(rules))


async def test_slow_pages_do_not_hold_up_the_pages_of_other_domains(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_pool, "MAX_CPU_S", 3600)
    before = children()
    hostile = [asyncio.create_task(pool.read(document(f"hostile{number}", NESTED))) for number in range(3)]
    healthy = [pool.read(document(f"p{number}")) for number in range(40)]
    assert [facts.title for facts in await asyncio.gather(*healthy)] == [f"p{number}" for number in range(40)]
    await until(lambda: len(pool._unanswered) == 3)
    assert (await pool.read(document("p40"))).title == "p40"
    assert len(children() - before) <= 2
    assert not any(task.done() for task in hostile)


async def test_the_pages_of_a_domain_are_slow_until_one_is_read_fast(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not (await pool.read(document("hostile", NESTED))).is_read
    assert pool._queue.kind("hostile.example") is Kind.SLOW
    monkeypatch.setattr(parser_pool, "FAST_CPU_S", 3600.0)
    assert (await pool.read(document("hostile"))).title == "hostile"
    assert pool._queue.kind("hostile.example") is Kind.UNKNOWN


async def test_a_slow_page_that_is_read_in_the_end_has_its_facts(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_pool, "FAST_CPU_S", 0.01)
    monkeypatch.setattr(parser_pool, "MAX_CPU_S", 3600)
    assert (await pool.read(document("slow", SLOW))).title == "slow"
    assert pool._queue.kind("slow.example") is Kind.SLOW


@pytest.mark.usefixtures("started")
async def test_a_process_that_is_killed_costs_no_page(pool: ParserPool) -> None:
    before = children()
    await pool.read(document("first"))
    (pid,) = children() - before
    os.kill(pid, signal.SIGSTOP)  # it reads none of the documents before it is killed
    reads = [asyncio.create_task(pool.read(document(f"p{number}"))) for number in range(4)]
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    assert [each.title for each in await asyncio.gather(*reads)] == ["p0", "p1", "p2", "p3"]


async def test_a_page_that_two_processes_do_not_survive_is_unread(
    pool: ParserPool, in_each_parser: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    in_each_parser(on_trigger("os.kill(os.getpid(), 9)"))
    deadly, behind = await asyncio.gather(pool.read(document("deadly", TRIGGER)), pool.read(document("behind")))
    assert (deadly.is_read, deadly.note) == (False, "not parsed: the parser process was killed by SIGKILL")
    assert behind.title == "behind"
    ended = "a parser process ended: the parser process was killed by SIGKILL"
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.getMessage() for record in warnings if record.name == "crawler.parsers"] == [
        ended,  # beside other documents: nobody knows whose fault it was
        ended,
        f"{ended}; its document is unread",
    ]


async def test_a_page_that_two_processes_did_not_survive_alone_is_unread(
    pool: ParserPool, in_each_parser: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    in_each_parser(on_trigger("os.kill(os.getpid(), 9)"))
    assert not (await pool.read(document("deadly", TRIGGER), is_alone=True)).is_read
    assert sum("a parser process ended" in record.getMessage() for record in caplog.records) == 2


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ("b'\\x00' * 8 + b'\\x00' * 7 + b'\\x01' + b'\\xff'", "the parser sent what is no answer"),
        ("b'\\x00\\x00\\x00\\x01' + b'\\x00' * 4", "the parser sent more than 64 MB"),
    ],
)
async def test_a_page_that_has_taken_its_process_over_is_unread(
    sent: str, why: str, pool: ParserPool, in_each_parser: Callable[[str], None]
) -> None:
    in_each_parser(on_trigger(f"[os.write(number, {sent}) for number in range(3, 9) if is_open(number)]") + IS_OPEN)
    evil = await pool.read(document("evil", TRIGGER))
    assert (evil.is_read, evil.note) == (False, f"not parsed: {why}")
    assert (await pool.read(document("next"))).title == "next"


async def test_the_answer_to_a_cancelled_reader_is_dropped(pool: ParserPool) -> None:
    first = asyncio.create_task(pool.read(document("first", SLOW)))
    await asyncio.sleep(0)
    second = asyncio.create_task(pool.read(document("second")))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).title == "second"


@pytest.mark.parametrize(
    ("processors", "workers", "parsers"),
    [(1, 1, 1), (2, 1, 1), (3, 1, 2), (5, 1, 4), (64, 1, 4), (64, 2, 2), (64, 3, 1), (4, 8, 1)],
)
def test_workers_share_one_less_than_the_processors(
    processors: int, workers: int, parsers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    assert default_parsers(workers) == parsers


async def test_a_process_is_started_when_a_document_has_to_wait() -> None:
    before = children()
    async with ParserPool(OPTIONS, parsers=3) as pool:
        await pool.read(document("one"))
        (first,) = children() - before
        os.kill(first, signal.SIGSTOP)  # the documents that it is not sent ahead have to wait
        reads = asyncio.gather(*(pool.read(document(f"p{number}", SLOW)) for number in range(30)))
        await until(lambda: len(children() - before) == 3)
        os.kill(first, signal.SIGCONT)
        await reads
        assert len(children() - before) == 3
    assert not children() - before


async def test_the_first_process_can_be_started_before_the_first_document(pool: ParserPool) -> None:
    before = children()
    pool.start()
    await until(lambda: len(children() - before) == 1)
    await pool.read(document("first"))
    assert len(children() - before) == 1


async def test_there_is_room_until_many_documents_wait(pool: ParserPool) -> None:
    reads = [asyncio.create_task(pool.read(document(f"p{number}"))) for number in range(MAX_DOCUMENTS)]
    await asyncio.sleep(0)
    assert not pool.has_room("other.example")
    await asyncio.gather(*reads)
    assert pool.has_room("other.example")


def _page(group: str) -> Request:
    return Request(f"http://{group}/", Purpose.PAGE, 1, group=group)


async def test_bodies_that_wait_leave_no_room_until_they_are_gone(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_memory, "MOST_WAITING", 1)
    holding = asyncio.create_task(pool.memory.hold(_page("a.test"), 2 * body_memory.MOST_OCTETS))
    await holding
    waiting = asyncio.create_task(pool.memory.hold(_page("b.test"), 1))
    await asyncio.sleep(0)
    assert not pool.has_room("other.example")
    waiting.cancel()  # no document comes of it
    await asyncio.sleep(0)
    assert pool.has_room("other.example")


async def test_closing_ends_the_processes_and_cancels_the_readers() -> None:
    before = children()
    pool = ParserPool(OPTIONS)
    await pool.read(document("first"))
    (pid,) = children() - before
    os.kill(pid, signal.SIGSTOP)  # it answers none of the readers
    reads = [asyncio.create_task(pool.read(document(f"p{number}"))) for number in range(20)]
    await until(lambda: len(pool._unanswered) == len(reads))
    await pool.close()
    await asyncio.wait(reads)
    assert all(read.cancelled() for read in reads)
    assert not children() - before
    with pytest.raises(asyncio.CancelledError):
        await pool.read(document("late"))
    await pool.close()


async def test_closing_ends_a_process_that_is_being_started(in_each_parser: Callable[[str], None]) -> None:
    in_each_parser("import time\ntime.sleep(3600)\n")
    before = children()
    pool = ParserPool(OPTIONS)
    read = asyncio.create_task(pool.read(document("first")))
    await until(lambda: bool(children() - before))
    await pool.close()
    await asyncio.wait([read])
    assert read.cancelled()
    assert not children() - before


@pytest.mark.parametrize("program", ["/bin/false", "/does/not/exist"])
async def test_readers_are_told_if_no_process_can_be_started(
    program: str, pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", program)
        with pytest.raises(ParserFailed, match="no process that reads pages can be started"):
            await pool.read(document("first"))
    assert (await pool.read(document("second"))).title == "second"


async def test_a_system_that_can_start_no_process_is_waited_for(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def execute_later(*args: Any, **options: Any) -> Any:
        if next(attempts) < 2 * parser_pool._MAX_FAILED_STARTS:
            raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))
        return await execute(*args, **options)

    loop, attempts = asyncio.get_running_loop(), itertools.count()
    execute = loop.subprocess_exec
    monkeypatch.setattr(loop, "subprocess_exec", execute_later)
    monkeypatch.setattr(parser_pool, "_START_AGAIN_S", 0.0)
    assert (await pool.read(document("first"))).title == "first"


async def test_readers_are_told_if_each_process_ends_before_it_is_known_to_have_started(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    execute = loop.subprocess_exec

    async def late(*args: Any, **options: Any) -> Any:
        transport, parser = await execute(*args, **options)
        await cast("Any", parser).ended
        return transport, parser

    monkeypatch.setattr(loop, "subprocess_exec", late)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ParserFailed, match="ended with exit code 1"):
        await pool.read(document("first"))


async def test_a_process_that_does_not_answer_is_killed(
    pool: ParserPool, in_each_parser: Callable[[str], None]
) -> None:
    in_each_parser(on_trigger("os.kill(os.getpid(), 19)"))
    read = asyncio.create_task(pool.read(document("stuck", TRIGGER)))
    for _ in range(3):
        await until(lambda: bool(children("T")))
        (parser,) = pool._parsers
        parser._check(parser._progress, parser_pool._CHECKS_WITHOUT_PROGRESS)  # as the timer does, 20 s later
        await until(parser.ended.done)
    assert (await read).note == "not parsed: the parser did not answer within 20 s"
    assert (await pool.read(document("next"))).title == "next"


@pytest.mark.usefixtures("started")
async def test_a_process_is_not_killed_after_one_look_without_progress(pool: ParserPool) -> None:
    before = children()
    await pool.read(document("first"))
    (pid,) = children() - before
    os.kill(pid, signal.SIGSTOP)
    read = asyncio.create_task(pool.read(document("late")))
    await asyncio.sleep(0)
    (parser,) = pool._parsers
    for checks in range(parser_pool._CHECKS_WITHOUT_PROGRESS):
        parser._timer.cancel()
        parser._check(parser._progress, checks)
    os.kill(pid, signal.SIGCONT)
    assert (await read).title == "late"
    assert children() - before == {pid}


async def test_a_bug_fails_its_page_alone(pool: ParserPool, in_each_parser: Callable[[str], None]) -> None:
    in_each_parser(on_trigger("{}[content]"))
    with pytest.raises(Fault, match="KeyError: '5'"):
        await pool.read(document("bug", TRIGGER))
    assert (await pool.read(document("next"))).title == "next"


async def test_no_process_outlives_a_crawler_that_is_killed() -> None:
    program = """
import asyncio, os
from crawler.engine.parser_pool import ParserPool
from tests.unit.engine.test_parser_pool import OPTIONS, SLOW, children, document

async def main():
    pool = ParserPool(OPTIONS, parsers=2)
    reads = [asyncio.create_task(pool.read(document(str(number), SLOW))) for number in range(30)]
    await reads[10]
    print(*children(), flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    parsers = [int(pid) for pid in ended.stdout.split()]
    assert parsers
    await until(lambda: not any(map(is_running, parsers)))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
