"""A crawler's store and a site that reports to it, for tests and the benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.command import HASTY, Ended, here, until
from tests.rup.site import TreeSite
from tests.rup.stored import Stored

CONFIG = HASTY


class Round(Stored):
    """A tree, and the crawl of it."""

    def __init__(self, site: TreeSite, folder: Path) -> None:
        self.site, self.post = site, site.smtp
        self.db, self.config = folder / "c.db", folder / "c.toml"
        self.config.write_text(CONFIG)

    def write(self, name: str, title: str) -> str:
        beside = self.db.parent / "next.html"
        beside.write_text(f"<title>{title}</title><p>{title}")
        beside.replace(self.site.root / name)  # at once, or a scan between may see two changes
        return f"/{name.removesuffix('index.html')}"

    def delete(self, name: str) -> str:
        (self.site.root / name).unlink()
        return f"/{name}"

    def crawl(self, *options: str) -> list[str]:
        before = len(self.site.asked)
        arguments = ("--allow-private", "--no-progress", "--config", self.config, "--db", self.db)
        ended = here("run", f"{self.site.base}/", *arguments, *options)
        assert ended.code == 0, ended
        return sorted(line.partition(" ")[2] for line in self.site.asked[before:])

    def register(self) -> None:
        ended = here(
            "rup", "register", self.site.base, "--email", "robot@crawler.test", "--latency", "1-second", "--db", self.db
        )
        assert ended.code == 0, ended

    def sync(self) -> Ended:
        ended = here("rup", "sync", "--maildir", self.post.box, "--db", self.db)
        assert ended.code == 0, ended
        return ended

    def posted(self, count: int) -> None:
        until(lambda: self.post.count >= count, f"mail {count}")

    def reported(self, paths: Iterable[str], since: int) -> None:
        """Wait until the reports after the first ``since`` name all of ``paths``."""
        until(lambda: self.post.reported(since).issuperset(paths), "the report of all changes")

    def is_in_step(self) -> bool:
        """Whether the store has the pages of the tree."""
        rows = self.query("SELECT url, title FROM pages WHERE gone_at IS NULL")
        tree = {path: text.partition("<title>")[2].partition("<")[0] for path, text in self.site.tree().items()}
        return {url.removeprefix(self.site.base): title for url, title in rows} == tree
