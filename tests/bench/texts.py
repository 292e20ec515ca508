"""Judges the Markdown of pages: on articles with known texts, and on pages of manuals.

`--articles DIR` is a clone of scrapinghub/article-extraction-benchmark: 181 articles with their texts, judged as its
own `evaluate.py` judges (runs of four words), but without `<h1>`: its texts have no headlines, and Markdown needs them.
`--realweb DIR` is the folder of `python -m tests.bench web`. The rules of :func:`expected` say what must be kept of a
page of a manual; the Markdown is rendered, and searched for it. Decision 0049 has the figures of other libraries.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.export.main_text import with_links
from crawler.page.content import content_of_html
from tests.bench.table import Row

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_WORD = re.compile(r"\w+")
_UNSHOWN = "script,style,template,noscript,svg,select,button,[hidden]"
# Navigation in the pages of these manuals, by the marks of the programs that made them.
_NAVIGATION = (
    "nav,[role=navigation],[role=search],[role=banner],[role=contentinfo],footer,aside,"
    ".navheader,.navfooter,.related,.sphinxsidebar,.spirit-nav,table.navigation,.nav-panel,.navpath,#nav-path,#side-nav,"
    ".menu,.mobile-nav,#leftnav,.sidebar,.bd-sidebar,.bd-toc,.toplang,.bottomlang,#path,.breadcrumbs,.searchmenu,"
    "#docs-header,#fixed-sidebar,.docs-navigation-links,.nav,.footer,#footer,#top,#hd,#ft,.navigationbar,.topbar"
)
# Of these it is not said whether they belong to the text: nothing of them must be there, and nothing must be away.
_NEITHER = "header,.toc,#toc,.contents.topic,.fancy_toc,.headerlink,.header,.toctree-wrapper,form,#quickview"
_TEXINFO = re.compile(r"^\s*(Next|Previous|Up|Prev):")


@dataclass(slots=True)
class Kept:
    """What must be kept of a page, as words, and lines of navigation."""

    pre: list[tuple[str, ...]] = field(default_factory=list)
    tables: list[tuple[tuple[str, ...], ...]] = field(default_factory=list)
    definition: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    navigation: list[str] = field(default_factory=list)


KINDS = ("pre", "tables", "definition", "headings", "items", "links")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--articles", type=Path, metavar="DIR", help="a clone of the benchmark of articles")
    parser.add_argument("--realweb", type=Path, metavar="DIR", help="the folder of `python -m tests.bench web`")
    parser.add_argument("--pages", type=int, default=150, metavar="N", help="pages of manuals [150]")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which pages of manuals [1]")
    parser.add_argument("--missing", action="store_true", help="print what is lost")


def run(options: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    if options.articles:
        rows += _judge_articles(options.articles)
    if options.realweb:
        rows += _judge_manuals(options)
    if not rows:
        raise argparse.ArgumentError(None, "name --articles or --realweb")
    return rows


def _judge_articles(folder: Path) -> list[Row]:
    truth = json.loads((folder / "ground-truth.json").read_text(encoding="utf-8"))
    pages = {key: gzip.decompress((folder / f"html/{key}.html.gz").read_bytes()).decode() for key in truth}
    start = time.process_time()
    found = {key: _to_markdown(html) for key, html in pages.items()}
    each = (time.process_time() - start) / len(pages)
    scores = [_overlap(truth[key].get("articleBody", ""), _below_title(rendered(found[key]))) for key in truth]
    precision = mean(score[0] for score in scores if score[0] is not None)
    recall = mean(score[1] for score in scores if score[1] is not None)
    f1 = 2 * precision * recall / (precision + recall)
    note = f"precision {precision:.3f}, recall {recall:.3f}, {each * 1000:.1f} ms of processor time a page"
    return [Row("articles, F1", f1, "", note=note)]


def _overlap(truth: str, found: str) -> tuple[float | None, float | None]:
    """Precision and recall of the runs of four words (`string_shingle_matching` of the benchmark)."""
    one, other = _runs(truth), _runs(found)
    both = sum((one & other).values())
    return (both / other.total() if other else None), (both / one.total() if one else None)


def _runs(text: str) -> Counter[tuple[str, ...]]:
    words = _WORD.findall(text)
    return Counter(tuple(words[n : n + 4]) for n in range(max(1, len(words) - 3))) if words else Counter()


def _judge_manuals(options: argparse.Namespace) -> list[Row]:
    wanted, got, pages_with_navigation, spent, lost = Counter[str](), Counter[str](), 0, 0.0, []
    sample = sample_of_manuals(options.realweb, options.pages, options.seed)
    for path in sample:
        html = path.read_bytes().decode(errors="replace")
        must = expected(html)
        start = time.process_time()
        markdown = _to_markdown(html)
        spent += time.process_time() - start
        page = Found(rendered(markdown))
        for kind in KINDS:
            for thing in getattr(must, kind):
                wanted[kind] += 1
                kept = page.has(kind, thing)
                got[kind] += kept
                if not kept:
                    lost.append((path, kind, thing))
        navigation = [line for line in must.navigation if page.has("items", line)]
        pages_with_navigation += bool(navigation)
        lost += [(path, "navigation", line) for line in navigation]
    if options.missing:
        for path, kind, thing in lost:
            print(path, kind, str(thing)[:200])
    rows = [
        Row(
            f"manuals, {kind}",
            100 * got[kind] / max(1, wanted[kind]),
            "%",
            note=f"{got[kind]:,} of {wanted[kind]:,}",
        )
        for kind in KINDS
    ]
    rows.append(Row("manuals, pages with navigation", pages_with_navigation, "", note=f"of {len(sample)}"))
    rows.append(Row("manuals, time a page", 1000 * spent / len(sample), "ms"))
    return rows


def sample_of_manuals(folder: Path, pages: int, seed: int) -> list[Path]:
    """Pages of all hosts in turn."""
    hosts = sorted(host for host in folder.glob("www/*/*") if host.is_dir())
    of_hosts = [sorted(path for path in host.rglob("*.html") if path.is_file()) for host in hosts]
    chance = random.Random(seed)
    for paths in of_hosts:
        chance.shuffle(paths)
    in_turn = (paths[n] for n in range(max(map(len, of_hosts))) for paths in of_hosts if n < len(paths))
    return [path for path, _ in zip(in_turn, range(pages), strict=False)]


def expected(html: str) -> Kept:
    """What must be kept of a page.

    - all preformatted text with its lines
    - tables of at least two rows and two columns with words, without a table or preformatted text in them
    - the definition: the first paragraph, definition or table cell of five words or more behind the first heading
    - the headings
    - the items of lists of eight words or more, at most half of them in links, without a list within
    - links with an address and a text in paragraphs, definitions and such items
    """
    tree, kept = LexborHTMLParser(html), Kept()
    if tree.body is None:
        return kept
    for node in tree.body.css(_UNSHOWN):
        node.decompose()
    outside = []
    for node in tree.body.css(_NAVIGATION):
        if node.css_first("h1,main,[role=main],pre") is None:
            outside.append(_words(node.text(separator=" ")))
            node.decompose()
    for node in tree.body.css("p,div"):
        if _TEXINFO.match(node.text()) and len(node.text()) < 300:
            outside.append(_words(node.text(separator=" ")))
            node.decompose()
    for node in tree.body.css(_NEITHER):
        if node.css_first("h1,h2,h3,pre,p") is None:
            node.decompose()
    text = _words(tree.body.text(separator=" "))
    kept.navigation = [line for line in map(_beginning, outside) if line and line not in text]
    for node in tree.body.css("pre"):
        for line_break in node.css("br"):
            line_break.replace_with("\n")
        if lines := _lines(node.text()):
            kept.pre.append(lines)
    for node in tree.body.css("table"):
        if rows := _data(node):
            kept.tables.append(rows)
    headings = [node for node in tree.body.css("h1,h2,h3,h4,h5,h6") if _words(node.text())]
    kept.headings = [_words(node.text()) for node in headings]
    kept.definition = list(_definition(tree.body))
    for node in tree.body.css("li"):
        if not _holds(node, "ul,ol,pre,table") and _is_said(node, 8):
            kept.items.append(_words(node.text()))
    for node in tree.body.css("p,dd"):
        if not _holds(node, "ul,ol,pre,table,p,dl") and _is_said(node, 8):
            for link in node.css("a[href]"):
                if said := _words(link.text()):
                    kept.links.append((said, (link.attributes["href"] or "").strip()))
    return kept


def _definition(body: LexborNode) -> Iterator[str]:
    behind = False
    for node in body.css("h1,h2,h3,p,dd,td"):
        if node.tag in ("h1", "h2", "h3"):
            behind = behind or bool(_words(node.text()))
        elif behind and not _holds(node, "p,table,pre,ul,ol,dl,h1,h2,h3") and len(_WORD.findall(node.text())) >= 5:
            yield _words(node.text())
            return


def _holds(node: LexborNode, selector: str) -> bool:
    return any(inner.mem_id != node.mem_id for inner in node.css(selector))


def _is_said(node: LexborNode, least: int) -> bool:
    linked = sum(len(_WORD.findall(link.text())) for link in node.css("a"))
    words = len(_WORD.findall(node.text()))
    return words >= least and linked <= words / 2


def _data(table: LexborNode) -> tuple[tuple[str, ...], ...]:
    if _holds(table, "table,pre,h1,h2,h3,h4") or table.attributes.get("role") == "presentation":
        return ()
    rows = [tuple(_words(cell.text()) for cell in row.css("td,th")) for row in table.css("tr")]
    rows = [row for row in rows if any(row)]
    wide = [row for row in rows if sum(map(bool, row)) >= 2]
    return tuple(rows) if len(wide) >= 2 else ()


def _words(text: str) -> str:
    """The letters and digits of a text, whatever its blanks and marks are."""
    return "".join(_WORD.findall(text)).casefold()


def _beginning(words: str) -> str:
    return words[:40] if len(words) >= 12 else ""


def _lines(text: str) -> tuple[str, ...]:
    return tuple(
        line.rstrip() for line in text.expandtabs().replace("\xa0", " ").strip("\n").splitlines() if line.strip()
    )


class Found:
    """A rendered page, looked through for what must be kept."""

    def __init__(self, html: str) -> None:
        body = LexborHTMLParser(html).body
        assert body is not None
        self._text = _words(body.text(separator=" "))
        self._pre = Counter(_lines(node.text()) for node in body.css("pre"))
        self._headings = Counter(_words(node.text()) for node in body.css("h1,h2,h3,h4,h5,h6"))
        self._links = {(_words(node.text()), _address(node.attributes["href"])) for node in body.css("a[href]")}
        self._tables = [[_words(row.text()) for row in node.css("tr")] for node in body.css("table")]

    def has(self, kind: str, thing: Any) -> bool:
        if kind == "pre":
            return self._pre[thing] > 0
        if kind == "headings":
            return self._headings[thing] > 0
        if kind == "links":
            return (thing[0], _address(thing[1])) in self._links
        if kind == "tables":
            rows = ["".join(row) for row in thing]
            return any(not Counter(rows) - Counter(table) for table in self._tables)
        return thing in self._text


def _address(href: str | None) -> str:
    """An address without what a base URL or an encoding may change."""
    return _words((href or "").rsplit("/", 1)[-1].replace("%20", ""))


def rendered(markdown: str) -> str:
    return _MARKDOWN.render(markdown)


def _below_title(html: str) -> str:
    body = LexborHTMLParser(html).body
    if body is None:
        return ""
    for node in body.css("h1"):
        node.decompose()
    return body.text(separator=" ")


def _to_markdown(html: str) -> str:
    return with_links(content_of_html(html), "http://page.test/")
