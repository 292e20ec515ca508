"""The stores of released versions, which ``tests/contract/test_migrations.py`` opens with today's code.

``python -m tests.released_stores`` writes the stores of this version to ``tests/released/``: a crawl of a few pages, as
a dump of each database. Run it once for a release, after the last change of the schema, and never change the files of a
released version.
"""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from crawler.store.postgres.store import PostgresStore
from crawler.store.sql.store import Store
from crawler.store.sqlite.store import SqliteStore
from crawler.version import VERSION
from tests.contract.visits import Harness, fetched, robots
from tests.postgres import Cluster, cluster

FOLDER = Path(__file__).parent / "released"
SEEDS = ("http://a.test/", "http://b.test/")
#: Lines that only the same version of psql reads.
_OF_THE_TOOL = ("SET transaction_timeout", "\\restrict", "\\unrestrict")
LINKS = 5  # of each seed; one of them is fetched


async def crawl_a_little(opener: Callable[[], Awaitable[Store]]) -> None:
    """Fetch the seeds and a page of each site; the other links stay queued."""
    harness = Harness(opener)
    await harness.reopen()
    await harness.seed(*SEEDS)
    for claim in await harness.claim():
        (site,) = claim.sites.values()
        await harness.news(site.id, site.name, robots())
        links = [f"{claim.urls[0].url}{n}" for n in range(LINKS)]
        await harness.finish(claim, fetched(claim.urls[0], links, title="a b", body=claim.group.encode()))
    await harness.close()


def dump_sqlite(path: Path) -> str:
    """The file as SQL, with the version of its schema."""
    with sqlite3.connect(path) as db:
        ((version,),) = db.execute("PRAGMA user_version")
        return "\n".join([*db.iterdump(), f"PRAGMA user_version = {version};"])


def write(name: str, dump: str) -> None:
    (FOLDER / f"{VERSION}.{name}.sql.gz").write_bytes(gzip.compress(dump.encode(), mtime=0))


def read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def dump_postgres(server: Cluster, url: str) -> str:
    """The database as SQL that ``psql`` of an earlier major version reads too."""
    dump = server.run(
        "pg_dump", "--no-owner", "--inserts", "-U", "crawler", "-h", str(server.folder), server.name_in(url)
    )
    return "".join(line for line in dump.splitlines(keepends=True) if not line.startswith(_OF_THE_TOOL))


async def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, cluster() as server:
        path, url = Path(folder, "crawl.db"), server.make_database()
        await crawl_a_little(lambda: SqliteStore.open(path))
        write("sqlite", dump_sqlite(path))
        await crawl_a_little(lambda: PostgresStore.open(url))
        write("postgres", dump_postgres(server, url))


if __name__ == "__main__":
    asyncio.run(main())
