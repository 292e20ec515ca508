"""A whole round: ``crawler rup serve`` over a tree, a real mail server, a Maildir, and the crawler that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import here, until
from tests.rup.old_server import deliver, maildir
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


def confirm(tour: Round) -> None:
    """Have the first report answered for: without that, no more would come."""
    tour.write("p1.html", "first")
    tour.posted(1)
    tour.sync()
    tour.crawl()


def test_each_round_requests_only_changed_pages(tour: Round) -> None:
    confirm(tour)
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


def test_mail_lost_doubled_and_out_of_order(tour: Round) -> None:
    confirm(tour)
    tour.post.holding = True
    for count, name in ((2, "p2.html"), (3, "p3.html"), (4, "p4.html")):
        tour.write(name, f"held {name}")
        tour.posted(count)
    lost, _, last = tour.post.held[-3:]
    tour.post.holding = False
    for mail in (last, last, tour.post.held[-2]):  # the one before them is lost
        deliver(tour.post.box, mail)
    assert "arrived after" in tour.sync().err
    tour.crawl()
    assert tour.is_in_step()
    deliver(tour.post.box, lost)
    tour.sync()
    tour.crawl()
    assert tour.is_in_step()
    assert tour.query("SELECT state_code FROM rup_servers") == [("reports",)]


def test_a_server_that_restarts_and_one_that_lost_its_memory(tour: Round) -> None:
    tour.site.close_rup()
    tour.write("p1.html", "while it was down")
    tour.later(400)
    assert "502" in tour.sync().err
    assert tour.query("SELECT state_code = 'unreached' AND state_detail LIKE '%502%' FROM rup_servers") == [(1,)]
    tour.site.open_rup()
    tour.posted(1)
    tour.sync()
    tour.crawl()
    assert tour.is_in_step()
    tour.site.close_rup()
    for path in tour.site.db.parent.glob("rup.db*"):
        path.unlink()
    tour.site.open_rup()
    tour.write("p2.html", "told to nobody")
    until(lambda: tour.site.has_seen("/p2.html"), "a scan")
    tour.later(2000)
    assert "registering again" in tour.sync().err
    tour.crawl()
    assert tour.is_in_step()
    tour.write("p3.html", "told again")
    tour.posted(2)
    tour.sync()
    tour.crawl()
    assert tour.is_in_step()
