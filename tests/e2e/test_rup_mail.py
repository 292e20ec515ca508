"""A whole round: ``crawler rup serve`` over a tree, a real mail server, a Maildir, and the crawler that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import here
from tests.rup.old_server import maildir
from tests.rup.post import post_office
from tests.rup.site import TreeSite, serving
from tests.rup.tour import Round


@pytest.fixture
def tour(tmp_path: Path) -> Iterator[Round]:
    """A site of 32 pages that the robot has crawled and registered with."""
    root = tmp_path / "tree"
    root.mkdir()
    box = maildir(tmp_path / "mail")
    with post_office(box) as post, serving(TreeSite(root, tmp_path / "rup.db", post)) as site:
        tour = Round(site, tmp_path)
        names = [f"p{n}.html" for n in range(30)]
        (root / "dir").mkdir()
        (root / "index.html").write_text(
            "<title>start</title>" + "".join(f"<a href={name}>{name}</a>" for name in [*names, "dir/"])
        )
        for name in [*names, "dir/index.html"]:
            tour.write(name, f"old {name}")
        site.open_rup()
        tour.crawl()
        assert tour.is_in_step()
        tour.register()
        yield tour


def test_each_round_requests_only_changed_pages(tour: Round) -> None:
    tour.write("p1.html", "first")
    tour.posted(1)
    tour.sync()  # answers the first report: without that, no more would come
    tour.crawl()
    for turn in range(1, 4):
        before = tour.post.count
        changed = [
            tour.write(f"new{turn}.html", f"new {turn}"),
            tour.write(f"p{turn}.html", f"changed {turn}"),
            tour.write("index.html", f"start {turn}"),
            tour.write("dir/index.html", f"folder {turn}"),
            tour.delete(f"p{20 + turn}.html"),
        ]
        tour.reported(changed, before)
        tour.sync()
        assert set(tour.crawl()) == set(changed)
        assert tour.is_in_step()
    assert here("audit", "--db", tour.db).code == 0
