"""Scanning a document tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawler.rup.protocol.report import ChangeKind
from crawler.rup.server.tree import FileState, Scanned, Tree, scan

SOON = 4e9  # any file is old enough by then


class Watched:
    """A tree and its known state."""

    def __init__(self, root: Path, prefix: str = "/", skip: frozenset[Path] = frozenset()) -> None:
        self.tree = Tree(root, prefix, skip)
        self.known: dict[str, FileState] = {}
        self.at: float | None = None

    def look(self, now: float = SOON) -> Scanned:
        found = scan(self.tree, self.known, now=now, previous_at=self.at)
        self.known.update(found.states)
        for path in found.gone:
            del self.known[path]
        self.at = now
        return found

    def changes(self) -> list[tuple[str, str]]:
        return [(change.kind.value, change.path) for change in self.look().changes]


def test_the_first_scan_reports_no_changes(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("a")
    watched = Watched(tmp_path)
    assert watched.look().changes == []
    assert list(watched.known) == ["/a.html"]
    assert watched.changes() == []


def test_new_changed_and_deleted_files_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("a")
    (tmp_path / "b.html").write_text("b")
    watched = Watched(tmp_path)
    watched.look()
    (tmp_path / "a.html").write_text("A")
    (tmp_path / "b.html").unlink()
    (tmp_path / "new/deep").mkdir(parents=True)
    (tmp_path / "new/deep/c d,ü%?#.html").write_text("c")
    assert sorted(watched.changes()) == [
        ("Change", "/a.html"),
        ("Delete", "/b.html"),
        ("New", "/new/deep/c%20d,%C3%BC%25%3F%23.html"),
    ]
    assert watched.changes() == []


def test_a_touched_file_is_no_news_and_one_rewritten_with_its_old_time_is(tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    file.write_text("a")
    watched = Watched(tmp_path)
    watched.look()
    os.utime(file, (1e9, 1e9))
    assert watched.changes() == []
    file.write_text("b")
    os.utime(file, (1e9, 1e9))
    assert watched.changes() == [("Change", "/a.html")]


def test_a_file_changed_just_now_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    file.write_text("a")
    watched = Watched(tmp_path)
    now = file.stat().st_mtime + 0.5
    watched.look(now)
    assert watched.known["/a.html"].mtime_ns == 0
    watched.look(now + 60)
    assert watched.known["/a.html"].mtime_ns > 0


def test_hidden_files_ours_and_links_out_of_the_tree_are_left_out(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "secret"
    root.mkdir()
    outside.write_text("s")
    (root / ".git").mkdir()
    (root / ".git/config").write_text("x")
    (root / ".htaccess").write_text("x")
    (root / "rup.db").write_text("x")
    (root / "out").symlink_to(outside)
    (root / "up").symlink_to(tmp_path)
    (root / "nowhere").symlink_to(tmp_path / "none")
    (root / "loop").symlink_to(root / "loop")
    (root / "a.html").write_text("a")
    (root / "in").symlink_to(root / "a.html")
    os.mkfifo(root / "pipe")
    watched = Watched(root, skip=frozenset({root / "rup.db"}))
    watched.look()
    assert sorted(watched.known) == ["/a.html", "/in"]


def test_a_tree_may_be_served_under_a_path(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("a")
    watched = Watched(tmp_path, "/docs/")
    watched.look()
    assert list(watched.known) == ["/docs/a.html"]


def test_a_root_that_cannot_be_read_is_an_error_and_not_an_empty_site(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"):
        Watched(tmp_path / "none").look()


def test_names_that_are_no_utf_8_are_served_as_octets(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.html")).write_text("a")
    watched = Watched(tmp_path)
    watched.look()
    assert list(watched.known) == ["/%FF.html"]


def test_a_change_has_the_time_of_the_file_if_that_is_plausible(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.look(1000.0)
    for name, modified in [("true", 1500.0), ("before", 500.0), ("future", 9000.0)]:
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (modified, modified))
    told = {change.path: (change.kind, change.at) for change in watched.look(2000.0).changes}
    assert told == {
        "/true": (ChangeKind.NEW, 1500.0),
        "/before": (ChangeKind.NEW, 2000.0),
        "/future": (ChangeKind.NEW, 2000.0),
    }
