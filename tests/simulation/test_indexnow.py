"""Submissions of IndexNow: taken beside a crawl, and followed when the key file of the site has proved them."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from crawler.demo.pages import Fault, Page, Site, plain
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.lease import Lease
from crawler.engine.polite_client import PoliteClient
from crawler.frontier.revisit import RevisitSettings
from crawler.rup.protocol.indexnow import Submission, read_post
from crawler.rup.robot.hints import StoreHints
from crawler.rup.robot.indexnow import MOST_OF_HOST, Inbox, serving
from crawler.rup.robot.subscribe import SubmissionTally, Subscriber
from crawler.settings.loading import settings_from
from crawler.store.sqlite.store import SqliteStore
from tests.judge import Manners, violations
from tests.reading import ReaderInProcess
from tests.simulation.crawls import Options, crawl, rows
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

KEY = "0123456789abcdef"
HOSTS = ("proved", "wrong", "missing", "closed", "silent")
KEY_FILES = {"proved": plain(KEY), "wrong": plain("another key"), "silent": Page(fault=Fault.RESET)}


def site(name: str) -> Site:
    closed = "User-agent: *\nDisallow: /*.txt\nAllow: /robots.txt" if name == "closed" else ""
    pages = {"/robots.txt": plain(closed), "/": Page("<a href=/p>p</a>"), "/p": Page("p")}
    return {**pages, f"/{KEY}.txt": KEY_FILES[name]} if name in KEY_FILES else pages


def submission(name: str, *paths: str) -> Submission:
    return read_post({"key": KEY, "urlList": [f"http://{name}.test{path}" for path in paths]})


def test_urls_count_when_the_key_file_has_the_key(db_path: Path, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    options = Options(revisit=RevisitSettings(enabled=True))

    async def main(clock: VirtualClock) -> tuple[SubmissionTally, list[str], list[tuple[str, ...]]]:
        web = SimulatedWeb(clock, {f"{name}.test": site(name) for name in HOSTS})
        await crawl(clock, db_path, web, [f"http://{name}.test/" for name in HOSTS], options)
        await clock.sleep(86_400)
        asked = len(web.log)
        for name in (*HOSTS, "unknown"):
            assert inbox.put(submission(name, "/p"))
        assert inbox.put(submission("proved", "/new"))
        store = await SqliteStore.open(db_path, options.politeness)
        await store.start_run({"auxiliary_run": "rup"}, clock.now())
        policy = RobotsPolicy(options.robots, "SimulatedBot")
        lease = Lease(store, clock, 60)
        client = PoliteClient(store, web, clock, options.politeness, policy, lease, None, ReaderInProcess())
        hints = StoreHints(store, options.revisit, None, lambda url, depth: None)
        robot = Subscriber(store.rup, hints, client, clock, lambda text: None)
        tally = await robot.read_submissions(inbox)
        await store.close()
        assert violations(web.log, Manners(delay_s=1.0, tolerance_s=1e-6)) == []
        keys = [hit.host for hit in web.log[asked:] if hit.path != "/robots.txt"]
        hinted = await rows(db_path, "SELECT url, hint FROM revisits WHERE hint IS NOT NULL")
        return tally, keys, hinted

    tally, keys, hinted = run_virtual(main)
    assert tally == SubmissionTally(taken=2, urls=2, refused=4, left=1)
    assert sorted(keys) == ["missing.test", "proved.test", "silent.test", "wrong.test"], "once for each key, as allowed"
    assert hinted == [("http://proved.test/p", "indexnow")]
    assert [given for _, given in inbox.waiting()] == [submission("silent", "/p")], "it waits for the next time"


async def test_the_listener_takes_what_the_protocol_allows(db_path: Path, tmp_path: Path) -> None:
    store = await SqliteStore.open(db_path)
    await store.add_seeds([("http://a.test/", None)])
    await store.close()
    inbox, settings = Inbox(tmp_path), settings_from({"store.db": str(db_path)}, source="test")
    queries = [{"url": "http://a.test/1", "key": KEY}, {"url": "http://b.test/1", "key": KEY}, {"url": "x"}]
    several = [submission("a", f"/{n}").as_json() for n in range(MOST_OF_HOST)]
    async with serving(settings, "127.0.0.1", 0, inbox) as port, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/indexnow"
        gets = [(await session.get(url, params=query)).status for query in queries]
        posts = [(await session.post(url, json=each)).status for each in several]
        broken = (await session.post(url, data=b"{")).status
    assert (gets, posts, broken) == ([202, 403, 400], [202] * MOST_OF_HOST, 400)
    assert len(list(inbox.waiting())) == MOST_OF_HOST, "one of them came twice"
    assert not inbox.put(submission("a", "/more"))
    assert {file.stat().st_mode & 0o777 for file, _ in inbox.waiting()} == {0o600}
