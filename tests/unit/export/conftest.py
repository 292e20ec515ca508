"""A small store full of what sites may send, and exports of it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from crawler.export import ExportOptions, ExportProgress, export
from crawler.frontier.decide import Outcome, Queued
from crawler.model import Body
from crawler.settings.loading import apply
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW, Harness, fetched, link, request, robots
from tests.records import replace

A, B = "http://a.test/", "http://b.test:8080/"

#: path at A: what the page says. The start page links to all of them, and to B.
PAGES: dict[str, dict[str, Any]] = {
    "plain": {"title": "Plain", "body": b"<title>Plain</title>", "charset": "utf-8"},
    "sum": {"title": "=1+1", "description": "'=quoted", "keywords": "-5", "body": "é".encode(), "charset": "utf-8"},
    "cells": {"title": 'a,"b"\r\nc;d', "description": "\tTab", "keywords": "@x", "body": b"", "charset": "utf-8"},
    "xml": {"title": "]]>&amp;<b a='\">\x00\x01\x1b\r\ufffe \U0001f600", "body": b"<x>", "charset": "utf-8"},
    "latin": {"title": "日本語", "body": "é".encode("cp1252"), "charset": "windows-1252"},
    "broken": {"title": "", "body": b"\xff\xfe\x00\x81", "charset": "utf-8"},
    "odd?b=2&a=%20'": {"body": b"%PDF\x00", "charset": "x-mac-cyrillic"},
    "hidden": {"index": False, "body": None},
    "copy": {"title": "Copy", "canonical_url": f"{A}plain", "body": b"<title>Plain</title>", "charset": "utf-8"},
    "told": {"directives": ("meta: all",), "other_schemes": {"mailto": 2}, "body": b"told", "charset": None},
}
BODIES = {f"{A}{path}": said["body"] for path, said in PAGES.items()} | {A: b"<p>body"}

Exporter = Callable[..., Awaitable[ExportProgress]]


def visit(queued: Queued) -> Outcome:
    said = dict(PAGES.get(queued.url.removeprefix(A), {"title": "Start", "charset": "utf-8"}))
    links: list[Any] = [*(f"{A}{path}" for path in PAGES), link(f"{B}x", follow=False)] if queued.url == A else [A]
    main = said.get("canonical_url")
    outcome = fetched(queued, [*links, main] if main else links, body=said.pop("body", b"<p>body"), **said)
    outcome = replace(outcome, target=main)
    assert outcome.page is not None
    if queued.url != f"{A}sum":
        return outcome
    body = outcome.page.body
    assert body is not None
    assert body.plain is not None
    kept = Body(body.sha256, None, gzip.compress(body.plain))
    page = replace(outcome.page, body=kept, etag='"v1"', last_modified="Sat, 21 Nov 2026 11:16:22 GMT")
    return replace(outcome, page=page)


@pytest.fixture
async def filled(db_path: Path) -> Path:
    """A closed store: a crawl of all pages at A, which leaves B out."""
    harness = Harness(lambda: SqliteStore.open(db_path))
    settings = apply(Settings(), {"identity.contact": "me@example.org"}, source="test")
    await harness.reopen(settings=asdict(settings))
    await harness.seed(A)
    while claims := await harness.claim():
        (claim,) = claims
        site = claim.urls[0].site_id
        copy = await harness.news(site, "http://a.test", robots(b"User-agent: *\nDisallow: /\xff\n"))
        paths = [queued.url.removeprefix(A[:-1]) for queued in claim.urls if queued.url != f"{A}broken"]
        asked = [request(site, path, NOW - 0.5, robots_id=copy, verdict_line=1) for path in paths]
        await harness.commit(*map(visit, claim.urls), requests=asked, released=[claim.group_id])
    await harness.close()
    return db_path


@pytest.fixture
async def store(filled: Path) -> AsyncIterator[SqliteStore]:
    """The same, opened to read."""
    store = await SqliteStore.open(filled, read_only=True)
    yield store
    await store.close()


@pytest.fixture
def save(filled: Path) -> Exporter:
    """A function that exports the filled store, each time over a connection of its own.

    Example: ``await save("csv", out, where=…)``.
    """

    async def save(format: str, out: Any, **options: Any) -> ExportProgress:
        store = await SqliteStore.open(filled, read_only=True)
        try:
            return await export(store, format, out, ExportOptions(**options), now=NOW + 60)
        finally:
            await store.close()

    return save
