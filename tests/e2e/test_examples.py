"""The worked examples in ``docs/examples``: every block runs in order and prints what the page shows.

The test runs the ``sh`` and ``python`` blocks of a page. A ``text`` block after one is its whole output. ``…`` stands
for text that varies, and a line of ``…`` for any number of lines. The test serves the sites ``NAME.example``. A command
that serves is ended when its page has answered.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import pytest

from crawler.demo.pages import Page, Site, plain, redirect
from tests.command import ROOT, forking_python
from tests.web import LoopbackWeb

EXAMPLES = ROOT / "docs" / "examples"
_BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.M | re.S)
_PORT = re.compile(r"(?:(?<=[a-z])|(?<=127\.0\.0\.1)):[0-9]{4,5}\b")
#: The sites of ``crawler demo``, which has another port each time.
_TOWN = re.compile(r"is served on 127\.0\.0\.1:([0-9]+);")
_SERVES = re.compile(r"crawler serve-search\b.*\n")
#: Stands in for ``crawler``: the names resolve to loopback, and the pause is short.
_COMMAND = """#!/bin/sh
case "$1" in
run) set -- "$@" --resolve '*.example=127.0.0.1' --allow-private --delay 0.05 ;;
serve-search) set -- "$@" --listen 127.0.0.1:0 ;;
esac
exec {python} -m crawler "$@"
"""


#: The settings of a crawl from Python, and those that take their place here.
_SETTINGS = '{"identity.contact": "you@example.org"}'
_SETTINGS_HERE = '{"fetch.resolve": ["*=127.0.0.1"], "fetch.allow_private": True, "politeness.delay": 0.05}'


def site(title: str, **pages: str) -> Site:
    """A site whose start page links to its pages. Each page is ``title|text``; ``#name`` in the text is a link."""
    start = "".join(f'<li><a href="/{name}">{text.partition("|")[0]}</a>' for name, text in pages.items())
    return {
        "/": Page(f"<title>{title}</title><ul>{start}</ul>"),
        **{f"/{name}": _page(text) for name, text in pages.items()},
        "/robots.txt": plain("User-agent: *\nDisallow: /cart\n"),
    }


def _page(text: str) -> Page:
    title, _, body = text.partition("|")
    return Page(f"<title>{title}</title><h1>{title}</h1><p>" + re.sub(r"#(\w+)", r'<a href="/\1">\1</a>', body))


def journal(articles: int, words: int) -> Site:
    """A site of ``articles`` articles: every fifth is in French, every eighth is missing."""
    made: dict[str, Page] = {"/": Page("<html lang=en>" + "".join(f"<a href=/{n}>{n}</a>" for n in range(articles)))}
    for n in range(articles):
        if n % 8:
            language = "fr" if n % 5 == 0 else "en"
            made[f"/{n}"] = Page(f"<html lang={language}><title>Article {n}</title><p>{'word ' * words * n}")
    return {**made, "/robots.txt": plain("User-agent: *\nDisallow: /3\n")}


def shop(*items: tuple[str, str, str]) -> Site:
    """A shop with a page for each of ``items``, (name, title, price), sorted views, and a calendar of events."""
    listed = "".join(f"<li><a href=/item/{name}>{title}</a>" for name, title, _ in items)
    views = "<a href=/?sort=price>by price</a><a href=/events>Events</a><a href=/terms>Terms</a>"
    start = Page(f"<title>Shop</title><ul>{listed}</ul>{views}")
    pages = {
        f"/item/{name}": Page(f"<title>{title}</title><h1>{title}</h1><b class=price>{price}</b><a href=/>Shop</a>")
        for name, title, price in items
    }
    rest = {"/?sort=price": start, "/events": Page("<title>Events</title>"), "/terms": Page("<title>Terms</title>")}
    return {"/": start, **pages, **rest, "/robots.txt": plain("User-agent: *\nDisallow: /item/secret\n")}


WEB: dict[str, Site] = {
    "shop.example": shop(
        ("kettle", "Copper kettle", "39.50"), ("lamp", "Desk lamp", "24.00"), ("secret", "Not yet on sale", "1.00")
    ),
    "weekly.example": journal(40, 20),
    "daily.example": journal(120, 5),
    "books.example": {
        **site(
            "A Bookshop",
            lighthouse="The Lighthouse Keeper|A novel about a lamp, and whoever trims it. See also #tides.",
            tides="A Table of Tides|High water for every harbour of the coast.",
            cart="Your cart|Empty.",
            drafts="Drafts|Not for search engines.",
        ),
        "/drafts": Page("<meta name=robots content=noindex><title>Drafts</title><p>Not yet."),
        "/old": redirect("/tides", 301),
    },
    "club.example": site("A Club", rules="Rules of the Club|Members bring a book.", cart="Orders|None."),
}


@pytest.mark.skipif(sys.platform == "win32", reason="the pages are written for a POSIX shell")
@pytest.mark.parametrize("page", sorted(EXAMPLES.glob("*.md")), ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(page: Path, loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites.update(WEB)
    blocks = _BLOCK.findall(page.read_text())
    assert len(blocks) > 5
    town = ""
    for (kind, code), (following, shown) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind != "text":
            code = re.sub(r"(?<=\.demo\.test):\d+", f":{town}", code)  # noqa: PLW2901
            printed = _run(kind, code, loopback.port, tmp_path)
            expected = shown if following == "text" else ""
            assert re.fullmatch(_pattern(expected), _plain(printed)), f"{code}\nprints:\n{_plain(printed)}"
            town = served[1] if (served := _TOWN.search(printed)) else town


def _run(kind: str, code: str, port: int, folder: Path) -> str:
    """The output of a block on both streams. Its exit code must be 0."""
    code = code.replace(_SETTINGS, _SETTINGS_HERE)
    code = re.sub(r"(?<=[a-z])\.example\b(?!\.)", f".example:{port}", code)
    bin_ = folder / ".bin"
    bin_.mkdir(exist_ok=True)
    (bin_ / "crawler").write_text(_COMMAND.format(python=forking_python()))
    (bin_ / "crawler").chmod(0o755)
    path = os.pathsep.join([str(bin_), str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["sh", "-euc", code] if kind == "sh" else [sys.executable, "-c", code]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, "COLUMNS": "120"},
    )
    if _SERVES.fullmatch(code):
        return _served(process)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, f"{code}\n{printed}"
    return printed


def _served(process: subprocess.Popen[str]) -> str:
    """The first two lines of a command that serves a page. The page must answer."""
    assert process.stdout is not None
    with process:
        try:
            printed = process.stdout.readline() + process.stdout.readline()
            address = next(word for word in printed.split() if word.startswith("http://"))
            with urlopen(address, timeout=60) as answer:
                assert answer.status == HTTPStatus.OK
        finally:
            process.terminate()
    return printed


def _plain(text: str) -> str:
    """The text without ports, and with single blanks."""
    lines = (" ".join(_PORT.sub("", line).split()) for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def _pattern(shown: str) -> str:
    """The regular expression for an output as a page shows it."""
    lines = (re.escape(line).replace("…", ".*") + "\n" for line in _plain(shown).splitlines())
    return "".join(r"(?:.*\n)*" if line == ".*\n" else line for line in lines)
