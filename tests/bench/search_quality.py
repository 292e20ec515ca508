"""Judges the search by questions whose pages are known, against two plain searches of the same texts.

The questions (`search_questions.txt`) are about the manuals of the web `mini` and were written before any search. A
third of them, chosen by the hash of their words, is held out: nothing may be tuned on it. The plain searches are FTS5
with porter stems (the title weighs ten times the text; all words, else any) and tantivy with its default settings. They
search the titles and main texts of the pages that the index has. `--show` prints the places of the right pages for the
other questions.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from urllib.parse import unquote, urlsplit

import xxhash

from crawler.search.index_file import index_path, open_index
from crawler.search.results import SQL, search
from crawler.store.sqlite.store import SqliteStore
from tests.bench import realweb
from tests.bench.table import Row

_QUESTIONS = Path(__file__).with_name("search_questions.txt")
_NOW = 2_000_000_000.0
_HITS = 10
_ITEM = re.compile(r'"[^"]+"|\S+')

#: The addresses of the best pages for the words of a question.
Searches = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Question:
    """Words of a user, and the pages that answer them (``HOST/PATH`` without ``.html``)."""

    kind: str
    words: str
    pages: frozenset[str]

    @property
    def is_held_out(self) -> bool:
        return xxhash.xxh3_64_intdigest(self.words.encode()) % 3 == 0


def questions() -> list[Question]:
    lines = (line for line in _QUESTIONS.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return [Question(kind, words, frozenset(pages.split())) for kind, words, pages in (x.split(" | ") for x in lines)]


@dataclass(frozen=True, slots=True)
class Judged:
    """Shares of the questions with a right page in first place, among three and among ten, and the mean nDCG@10."""

    first: float
    three: float
    ten: float
    ndcg: float

    @classmethod
    def of(cls, answers: Sequence[tuple[Question, Sequence[int]]]) -> Judged:
        """``answers`` are questions with the places of their right pages, from 0."""
        n = max(len(answers), 1)
        within = [sum(any(place < most for place in places) for _, places in answers) / n for most in (1, 3, _HITS)]
        return cls(*within, sum(_ndcg(places, len(question.pages)) for question, places in answers) / n)


def _ndcg(places: Sequence[int], right: int) -> float:
    best = sum(1 / log2(place + 2) for place in range(min(right, _HITS)))
    return sum(1 / log2(place + 2) for place in places) / best


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--web", type=Path, metavar="DIR", help="a folder that `web` has filled, with the web `mini`")
    parser.add_argument("--db", type=Path, metavar="FILE", help="the store of a crawl of it; made if it is not there")
    parser.add_argument(
        "--show",
        action="store_true",
        help="print the questions that are not held out, with the places of their right pages",
    )


def run(options: argparse.Namespace) -> list[Row]:
    if options.db is None:
        raise argparse.ArgumentError(None, "which store? --db FILE; with --web DIR it is made if it is not there")
    if not options.db.exists():
        if options.web is None:
            raise argparse.ArgumentError(None, f"{options.db} is not there; --web DIR names the web to crawl")
        _crawl(realweb.load(options.web, "mini"), options.db)
    return asyncio.run(_measure(options.db, options.show))


def _crawl(web: realweb.Web, db: Path) -> None:
    run = ["run", *web.seeds, "--scope", "any", "--include", web.rule, "--allow-private", "--delay", "0"]
    with realweb.served(web):
        for command in ([*run, "--no-progress", "--resolve", "*.test=127.0.0.1"], ["rank"], ["index"]):
            subprocess.run([sys.executable, "-m", "crawler", *command, "--db", db], env=os.environ, check=True)


async def _measure(db: Path, show: bool) -> list[Row]:
    asked = questions()
    store = await SqliteStore.open(db, read_only=True)
    try:
        answers = {"crawler search": [(question, await _ours(store, db, question)) for question in asked]}
        pages = await _texts(store, db)
    finally:
        await store.close()
    for name, make in {"FTS5": plain_fts5, "tantivy": tantivy_default}.items():
        searches = make(pages)
        answers[name] = [(question, _places(searches(question.words), question)) for question in asked]
    if show:
        _show(answers)
    return [row for name, of_search in answers.items() for row in _rows(name, of_search)]


async def _ours(store: SqliteStore, db: Path, question: Question) -> list[int]:
    found = await search(store, str(db), question.words, now=_NOW, limit=_HITS)
    return _places([hit.url for hit in found.hits], question)


def _places(urls: Sequence[str], question: Question) -> list[int]:
    return [place for place, url in enumerate(urls) if _name(url) in question.pages]


def _name(url: str) -> str:
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("mini-").removesuffix(".test")
    return f"{host}{unquote(parts.path).removesuffix('.html')}"


async def _texts(store: SqliteStore, db: Path) -> dict[str, tuple[str, str]]:
    """Title and main text of each page in the index."""
    async with open_index(await index_path(store, str(db)), 3600) as index:
        rows = {row["url_id"]: row["row_id"] for row in await index.query("SELECT url_id, row_id FROM search_page")}
        documents = await index.documents(rows.values())
    numbers = ", ".join(map(str, rows))
    pages = await store.query(SQL["pages"].format(numbers=numbers))
    texts = {page["url"]: documents[rows[page["url_id"]]] for page in pages}
    return {url: (texts[url].title, texts[url].text) for url in sorted(texts)}


def plain_fts5(pages: Mapping[str, tuple[str, str]]) -> Searches:
    """The first baseline."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(url UNINDEXED, title, text, tokenize = 'porter unicode61')")
    db.executemany("INSERT INTO t VALUES (?, ?, ?)", ((url, *texts) for url, texts in pages.items()))
    sql = f"SELECT url FROM t WHERE t MATCH ? ORDER BY bm25(t, 0, 10, 1), rowid LIMIT {_HITS}"

    def search_it(words: str) -> Sequence[str]:
        items = [f'"{said}"' for item in _ITEM.findall(words) if any(map(str.isalnum, said := item.strip('"')))]
        for operator in (" AND ", " OR "):
            if found := db.execute(sql, (operator.join(items),)).fetchall():
                return [url for (url,) in found]
        return []

    return search_it


def tantivy_default(pages: Mapping[str, tuple[str, str]]) -> Searches:
    """The second baseline."""
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("url", stored=True, tokenizer_name="raw")
    schema.add_text_field("title")
    schema.add_text_field("text")
    index = tantivy.Index(schema.build())
    writer = index.writer(num_threads=1)
    for url, (title, text) in pages.items():
        writer.add_document(tantivy.Document(url=url, title=title, text=text))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search_it(words: str) -> Sequence[str]:
        query = index.parse_query(re.sub(r"[^\w\s\"]", " ", words), ["title", "text"])
        return [searcher.doc(address)["url"][0] for _, address in searcher.search(query, _HITS).hits]

    return search_it


def _rows(name: str, answers: Sequence[tuple[Question, Sequence[int]]]) -> list[Row]:
    parts = {
        "tuned on": [each for each in answers if not each[0].is_held_out],
        "held out": [each for each in answers if each[0].is_held_out],
    }
    rows = []
    for part, of_part in parts.items():
        judged = Judged.of(of_part)
        said = f"first {judged.first:.0%}, in three {judged.three:.0%}, in ten {judged.ten:.0%}"
        rows.append(Row(f"{name}, {len(of_part)} questions {part}: {said}; nDCG@10", 100 * judged.ndcg, "%"))
    return rows


def _show(answers: Mapping[str, Sequence[tuple[Question, Sequence[int]]]]) -> None:
    for of_question in zip(*answers.values(), strict=True):
        question = of_question[0][0]
        if question.is_held_out:
            continue
        places = "  ".join(",".join(str(place + 1) for place in places) or "-" for _, places in of_question)
        print(f"{question.kind:9}  {places:14}  {question.words}")
