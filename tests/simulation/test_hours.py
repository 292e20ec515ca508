"""Whole crawls that ask some hosts at some hours of the day alone, judged by the server's log and by the audit."""

from __future__ import annotations

from pathlib import Path

from crawler.demo.pages import Page, Site, plain
from crawler.frontier.hours import window
from crawler.frontier.politeness import PolitenessSettings
from crawler.robots.response import RobotsSettings
from tests.simulation.crawls import Options, crawl, crawl_for, rows
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual

HOUR_S = 3600.0


def site(pages: int) -> Site:
    links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(1, pages))
    return {"/robots.txt": plain(""), "/": Page(links)} | {f"/{n}": Page("leaf") for n in range(1, pages)}


def options(hours: tuple[str, ...], delay_s: float) -> Options:
    return Options(politeness=PolitenessSettings(delay_s=delay_s, hours=hours), robots=RobotsSettings())


def test_a_host_with_hours_is_asked_in_these_alone_and_the_others_do_not_wait(db_path: Path) -> None:
    """Seven requests, ten minutes apart, in a window of 25 minutes that is shut at first: they take three nights."""
    hour = (int(EPOCH_S // HOUR_S) + 2) % 24
    text = f"night.test={hour}:00-{hour}:25 UTC"

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"night.test": site(6), "day.test": site(6)}, latency_s=0.1)
        seeds = ["http://night.test/", "http://day.test/"]
        await crawl_for(clock, db_path, web, seeds, options((text,), 600.0), 20 * HOUR_S, crash=True)
        (waits,) = await rows(db_path, "SELECT wait_code FROM sites WHERE site = 'http://night.test'")
        assert waits == ("hours",)
        assert (await crawl(clock, db_path, web, options=options((text,), 600.0))).startswith("nothing is left")
        night, day = web.web.hits("night.test"), web.web.hits("day.test")
        assert (len(night), len(day)) == (7, 7)
        assert all(window(text).is_open(EPOCH_S + hit.started_at) for hit in night)
        assert day[-1].finished_at - day[0].started_at < 1.1 * HOUR_S
        assert night[-1].started_at - night[0].started_at > 2 * 23 * HOUR_S

    run_virtual(main)


def test_a_host_with_hours_gets_its_turn_at_an_address_that_many_names_share(db_path: Path) -> None:
    """The window has room for three requests to the address, and twelve names wait there by day and by night."""
    hour = (int(EPOCH_S // HOUR_S) + 1) % 24
    text = f"night.test={hour}:00-{hour}:25 UTC"
    names = [f"day{n}.test" for n in range(12)]

    async def main(clock: VirtualClock) -> None:
        sites = {"night.test": site(2)} | {name: site(20) for name in names}
        web = SimulatedWeb(clock, sites, latency_s=0.1, addresses=lambda host: "192.0.2.1")
        seeds = [f"http://{name}/" for name in sites]
        await crawl_for(clock, db_path, web, seeds, options((text,), 600.0), 2 * HOUR_S, crash=True)
        assert web.web.hits("night.test") == [], "the address is crowded"
        await clock.sleep(22.5 * HOUR_S)  # a crawl that waits would renew its lease all day
        await crawl_for(clock, db_path, web, seeds, options((text,), 600.0), 1.5 * HOUR_S, crash=True)
        assert [hit.path for hit in web.web.hits("night.test")] == ["/robots.txt"], "in the second night"
        assert all(len(web.web.hits(name)) < 20 for name in names), "the address is crowded all the time"

    run_virtual(main)
