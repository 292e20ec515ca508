"""Heavy pages are read in a child: what it answers is told of the page that it was asked about, or of none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from typing import IO, Any

import pytest

from crawler.engine import page_reader as reader
from crawler.engine.page_reader import PageReader
from crawler.model import Fetched, Reading
from crawler.page.guard import is_light


def heavy(title: str) -> Fetched:
    body = b"<title>%s</title>" % title.encode() + b"<div>" * 3000 + b"</div>" * 3000 + b"<b><i><p>x</p>" * 3000
    assert not is_light(body)
    return Fetched(f"http://{title}.example/", 0, 0, status=200, content_type="text/html", plain=body)


class Asked:
    """Tells when a child has been asked about a page; ``go`` lets who asked first look for the answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._look, self.asked, self.go = reader._answers, threading.Event(), threading.Event()
        monkeypatch.setattr(reader, "_answers", self._answers)

    def _answers(self, stream: IO[bytes], wait_s: float) -> bool:
        if wait_s == reader._WALL_S and not self.asked.is_set():
            self.asked.set()
            self.go.wait()
        return self._look(stream, wait_s)


async def test_a_page_whose_reader_was_cancelled_leaves_its_answer_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    pages, asked = PageReader("x", Reading.STRICT), Asked(monkeypatch)
    try:
        first = asyncio.create_task(pages.read(heavy("first")))
        await asyncio.to_thread(asked.asked.wait)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        second = asyncio.create_task(pages.read(heavy("second")))
        await asyncio.wait([second], timeout=0.5)  # long enough to take what it should not
        asked.go.set()
        assert (await second).title == "second"
    finally:
        asked.go.set()
        pages.close()


async def test_a_child_that_greets_too_late_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_START_S", 0.0)
    pages = PageReader("x", Reading.STRICT)
    try:
        late = [await pages.read(heavy(title)) for title in ("one", "two", "three")]
        assert [facts.title for facts in late] == [None] * 3
        assert all(facts.note for facts in late)
        monkeypatch.undo()
        assert (await pages.read(heavy("four"))).title == "four"
    finally:
        pages.close()


async def test_closing_ends_the_child_and_whoever_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    pages, asked = PageReader("x", Reading.STRICT), Asked(monkeypatch)
    reads = [asyncio.create_task(pages.read(heavy(title))) for title in ("asked", "waits")]
    await asyncio.to_thread(asked.asked.wait)
    closing = asyncio.create_task(asyncio.to_thread(pages.close))
    await asyncio.to_thread(os.waitid, os.P_PID, started[0].pid, os.WEXITED | os.WNOWAIT)  # killed
    asked.go.set()
    await closing
    facts = await asyncio.gather(*reads)
    assert [(one.title, bool(one.note)) for one in facts] == [(None, True)] * 2
    assert [process.poll() is not None for process in started] == [True]
