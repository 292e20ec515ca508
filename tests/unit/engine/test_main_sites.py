"""The main sites of mirrors that the engine knows."""

from __future__ import annotations

from crawler.clock import SystemClock
from crawler.engine.main_sites import MainSites
from crawler.robots.mirrors import Contradiction
from crawler.store.rows import Refuted


def test_a_site_is_a_main_site_while_it_has_a_mirror() -> None:
    main_sites = MainSites(None, SystemClock(), None)
    main_sites.learn([("a", "x"), ("b", "x"), ("b", "y"), ("c", "y")])
    assert [site for site in "abcxy" if main_sites.is_main(site)] == ["x", "y"]
    main_sites.refute([Refuted("a", "x", Contradiction.REDIRECTS), Refuted("b", "x", Contradiction.REDIRECTS)])
    assert [site for site in "abcxy" if main_sites.is_main(site)] == ["y"]
    main_sites.refute([Refuted(site, "y", Contradiction.NO_PAGE) for site in "bc"])
    assert [site for site in "abcxy" if main_sites.is_main(site)] == []
