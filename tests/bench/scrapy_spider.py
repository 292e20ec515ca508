"""A Scrapy crawl that stores the same data: `PYTHON scrapy_spider.py SEED RULE STORE [CONCURRENCY]`.

PYTHON must have Scrapy. `@FILE` as the seed names a file with a seed a line.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor

BATCH = 200
SETTINGS = {
    "LOG_LEVEL": "ERROR",
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "DOWNLOAD_DELAY": 0,
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "METAREFRESH_ENABLED": False,
}


class Store:
    """Writes pages and links to SQLite, a batch in one transaction."""

    def __init__(self, path: str) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.executescript(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
            CREATE TABLE page (url TEXT PRIMARY KEY, status INTEGER, body BLOB);
            CREATE TABLE link (source TEXT, target TEXT);
            CREATE TABLE crawl (requests INTEGER);
            """
        )
        self.pages: list[tuple[str, int, bytes]] = []
        self.links: list[tuple[str, str]] = []

    def add(self, response: HtmlResponse, targets: list[str]) -> None:
        self.pages.append((response.url, response.status, zlib.compress(response.body, 1)))
        self.links += [(response.url, target) for target in targets]
        if len(self.pages) >= BATCH:
            self.flush()

    def flush(self) -> None:
        self.database.execute("BEGIN")
        self.database.executemany("INSERT OR IGNORE INTO page VALUES (?, ?, ?)", self.pages)
        self.database.executemany("INSERT INTO link VALUES (?, ?)", self.links)
        self.database.execute("COMMIT")
        self.pages.clear()
        self.links.clear()


class Spider(scrapy.Spider):
    """Follows the links that match the rule. It cuts fragments before it makes links, which halves the time."""

    name = "bench"

    def __init__(self, seed: str, rule: str, store: str, **others: Any) -> None:
        super().__init__(**others)
        self.start_urls = Path(seed[1:]).read_text().split() if seed.startswith("@") else [seed]
        self.store = Store(store)
        self.extractor = LinkExtractor(
            allow=re.compile(rule),
            tags=("a", "area"),
            attrs=("href",),
            process_value=lambda href: href.partition("#")[0],
        )

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        if isinstance(response, HtmlResponse):
            targets = [link.url for link in self.extractor.extract_links(response)]
            self.store.add(response, targets)
            for target in targets:
                yield scrapy.Request(target)

    def closed(self, reason: str) -> None:
        self.store.flush()
        sent = self.crawler.stats.get_value("downloader/request_count")
        self.store.database.execute("INSERT INTO crawl VALUES (?)", (sent,))


if __name__ == "__main__":
    seed, rule, store, *concurrency = sys.argv[1:]
    process = CrawlerProcess(SETTINGS | ({"CONCURRENT_REQUESTS": int(concurrency[0])} if concurrency else {}))
    process.crawl(Spider, seed=seed, rule=rule, store=store)
    process.start()
