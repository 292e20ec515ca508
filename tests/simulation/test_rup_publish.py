"""The publisher in virtual time: which mails it sends when and to whom, also if the mail server fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from crawler.demo.pages import Page, Site, plain
from crawler.rup.mail.smtp import Later, Outcome, Refused, Sent
from crawler.rup.protocol.mail import ReceivedReport, read_mail
from crawler.rup.protocol.server import Registration, ServerOffer, ended
from crawler.rup.protocol.units import Span
from crawler.rup.server.own_robots import OwnRobots
from crawler.rup.server.publish import GIVE_UP_S, MOST_REFUSALS, Publisher
from crawler.rup.server.store import RupStore
from crawler.rup.server.tree import Tree
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
ROBOT = Registration("r@b.example", "KEY", Span(1, "hour"), EPOCH_S, client="192.0.2.1", agent="indie", confirmed=True)


@dataclass
class PostOffice:
    """Accepts mails, or fails with ``trouble``."""

    clock: VirtualClock
    trouble: Outcome | None = None
    tries: list[tuple[float, bytes]] = field(default_factory=list)
    mails: list[tuple[float, str, ReceivedReport]] = field(default_factory=list)

    async def send(self, sender: str, recipient: str, octets: bytes) -> Outcome:
        at = self.clock.now() - EPOCH_S
        self.tries.append((at, octets))
        if self.trouble is not None:
            return self.trouble
        arrived = read_mail(octets)
        assert isinstance(arrived, ReceivedReport)
        self.mails.append((at, recipient, arrived))
        return Sent()

    async def close(self) -> None:
        return None

    def said(self) -> list[tuple[float, int | None, list[str]]]:
        """Minutes since the start, sequence number and changes."""
        return [
            (at / MINUTE, mail.report.sequence_number, [f"{c.kind.value} {c.path}" for c in mail.report.changes])
            for at, _, mail in self.mails
        ]


@dataclass
class Round:
    """A running publisher for ``root``."""

    publisher: Publisher
    clock: VirtualClock
    store: RupStore
    post: PostOffice
    root: Path
    notes: list[str]

    async def register(self, registration: Registration = ROBOT) -> None:
        async with self.store.transaction():
            await self.store.put(replace(registration, reported_to=await self.store.log_end()))

    async def until(self, minutes: float) -> None:
        await self.clock.sleep(EPOCH_S + minutes * MINUTE - self.clock.now())

    async def until_day(self, days: float) -> None:
        """Nothing changes in the tree meanwhile, so one look at it in a day is enough."""
        self.publisher.scan_every_s = DAY
        await self.until(days * DAY / MINUTE)


@asynccontextmanager
async def publishing(
    clock: VirtualClock,
    folder: Path,
    site: Site | None = None,
    post: PostOffice | None = None,
    scan_every_s: float = 10 * MINUTE,
) -> AsyncIterator[Round]:
    root, notes = folder / "root", list[str]()
    root.mkdir(exist_ok=True)
    store = await RupStore.open(folder / "rup.db")
    post = post or PostOffice(clock)
    web = SimulatedWeb(clock, {} if site is None else {"a.example": site})
    publisher = Publisher(
        store=store,
        tree=Tree(root),
        offer=ServerOffer("http://a.example/rup", "http://a.example/"),
        robots=OwnRobots("http://a.example", root / "robots.txt", web, clock),
        mailer=post,
        clock=clock,
        note=notes.append,
        sender="rup@a.example",
        scan_every_s=scan_every_s,
    )
    running = asyncio.create_task(publisher.run())
    try:
        yield Round(publisher, clock, store, post, root, notes)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await store.close()
    assert running.cancelled(), running.exception()


def play(
    folder: Path, story: Callable[[Round], Awaitable[None]], site: Site | None = None, scan_every_s: float = 10 * MINUTE
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with publishing(clock, folder, site, scan_every_s=scan_every_s) as stage:
            await stage.until(1)
            await story(stage)

    run_virtual(main)


def test_a_report_is_due_once_per_latency_and_on_a_quiet_day_once_a_day(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        await stage.register()
        (stage.root / "a.html").write_text("a")
        await stage.until(15)
        (stage.root / "b.html").write_text("b")
        (stage.root / "a.html").unlink()
        await stage.until(65)
        (stage.root / "b.html").write_text("B")
        await stage.until_day(3)
        assert stage.post.said() == [
            (60, 1, ["New /a.html", "Delete /a.html", "New /b.html"]),
            (120, 2, ["Change /b.html"]),
            (120 + 1440, 3, []),
            (120 + 2880, 4, []),
        ]
        assert len({mail.message_id for _, _, mail in stage.post.mails}) == 4

    play(tmp_path, story)


def test_an_unconfirmed_address_gets_one_mail_and_is_deleted_later(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        await stage.register(replace(ROBOT, confirmed=False))
        for number in range(5):
            (stage.root / f"{number}.html").write_text("a")
            await stage.until(65 * (number + 1))
        assert stage.post.said() == [(60, 1, ["New /0.html"])]
        registration = await stage.store.registration("R@B.example")
        assert registration is not None
        async with stage.store.transaction():
            await stage.store.put(replace(registration, confirmed=True))
        await stage.until(500)
        assert [said[2] for said in stage.post.said()[1:]] == [[f"New /{number}.html" for number in range(1, 5)]]
        assert registration.accepted_at == EPOCH_S + HOUR
        await stage.register(replace(ROBOT, email="other@b.example", confirmed=False))
        await stage.until_day(33)
        assert [known.email for known in await stage.store.registrations()] == ["r@b.example"]

    play(tmp_path, story, scan_every_s=HOUR / 2)


def test_a_registration_that_has_ended_is_remembered_for_a_month(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        await stage.register(ended(replace(ROBOT, reported_at=EPOCH_S, accepted_at=EPOCH_S)))
        await stage.until_day(29)
        assert await stage.store.registration(ROBOT.email) is not None
        await stage.until_day(32)
        assert await stage.store.registration(ROBOT.email) is None
        assert stage.post.mails == []

    play(tmp_path, story, scan_every_s=HOUR / 2)


def test_a_report_has_only_paths_that_the_robot_wants_and_may_know(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        robots = "User-agent: indie\nDisallow: /closed/\n\nUser-agent: *\nDisallow: /\nAllow: /robots.txt\n"
        (stage.root / "robots.txt").write_text(robots)
        await stage.until(15)
        await stage.register(replace(ROBOT, exclude=(r"\.gif$",)))
        await stage.register(replace(ROBOT, email="only@b.example", include_only=("^/docs/",)))
        await stage.register(replace(ROBOT, email="stranger@b.example", agent=""))
        for name in ("closed", "docs"):
            (stage.root / name).mkdir()
            (stage.root / name / "a.html").write_text("a")
        (stage.root / "x.gif").write_text("x")
        (stage.root / "y.html").write_text("y")
        await stage.until(65)
        told = {to: [change.path for change in mail.report.changes] for _, to, mail in stage.post.mails}
        assert told == {"r@b.example": ["/docs/a.html", "/y.html"], "only@b.example": ["/docs/a.html"]}

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("site", "told"),
    [
        (None, True),
        ({"/robots.txt": Page("", status=404)}, True),
        ({"/robots.txt": plain("User-agent: *\nDisallow: /a")}, False),
        ({"/robots.txt": Page("", status=403)}, False),
        ({"/robots.txt": Page("", status=503)}, False),
    ],
)
def test_without_a_robots_txt_in_the_tree_the_served_one_counts(tmp_path: Path, site: Site | None, told: bool) -> None:
    async def story(stage: Round) -> None:
        await stage.register()
        (stage.root / "a.html").write_text("a")
        await stage.until(180)
        assert bool(stage.post.mails) is told

    play(tmp_path, story, site)


def test_a_mail_server_that_is_away_gets_everything_in_order_when_it_is_back(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        await stage.register()
        stage.post.trouble = Later("connection refused", reached=False)
        for number in range(3):
            (stage.root / f"{number}.html").write_text("a")
            await stage.until(70 * (number + 1))
        first = [octets for at, octets in stage.post.tries if octets == stage.post.tries[0][1]]
        assert 5 < len(first) < 20, "pauses grow"
        stage.post.trouble = None
        await stage.until(300)
        assert [said[1:] for said in stage.post.said()] == [(n + 1, [f"New /{n}.html"]) for n in range(3)]
        assert stage.post.tries[-3][1] == first[0], "as it was made at first"
        assert sum("connection refused" in note for note in stage.notes) == 1

    play(tmp_path, story)


def test_a_mail_not_taken_for_days_is_given_up(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        await stage.register()
        stage.post.trouble = Later("451 later", reached=True)
        (stage.root / "a.html").write_text("a")
        await stage.until_day((GIVE_UP_S + 3 * HOUR) / DAY)
        assert min(mail.sequence_number for mail in await stage.store.due_mails(1e11, 99)) > 1

    play(tmp_path, story)


def test_an_address_that_takes_no_mail_is_forgotten(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        stage.post.trouble = Refused("550 no such user")
        await stage.register(replace(ROBOT, email="never@b.example", confirmed=False))
        await stage.register()
        for number in range(MOST_REFUSALS):
            known = {registration.email for registration in await stage.store.registrations()}
            assert known == ({"never@b.example", "r@b.example"} if number == 0 else {"r@b.example"})
            (stage.root / f"{number}.html").write_text("a")
            await stage.until(65 * (number + 1))
        assert await stage.store.registrations() == []
        assert await stage.store.value("waiting") == 0

    play(tmp_path, story)


def test_many_changes_make_several_reports(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        await stage.register()
        await stage.register(replace(ROBOT, email="new@b.example", confirmed=False))
        for number in range(6000):
            (stage.root / f"{number}.html").write_text("")
        await stage.until(65)
        counts = [(to, mail.report.sequence_number, len(mail.report.changes)) for _, to, mail in stage.post.mails]
        assert sorted(counts) == [("new@b.example", 1, 5000), ("r@b.example", 1, 5000), ("r@b.example", 2, 1000)]

    play(tmp_path, story)


def test_a_tree_that_cannot_be_read_is_no_news(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        (stage.root / "a.html").write_text("a")
        await stage.until(15)
        await stage.register()
        stage.root.rename(tmp_path / "away")
        await stage.until(35)
        (tmp_path / "away").rename(stage.root)
        await stage.until(100)
        assert stage.post.mails == []
        assert any("cannot be scanned" in note for note in stage.notes)

    play(tmp_path, story)


def test_a_restart_continues(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        post = PostOffice(clock, Later("down", reached=False))
        async with publishing(clock, tmp_path, post=post) as stage:
            await stage.until(1)
            await stage.register()
            (stage.root / "a.html").write_text("a")
            await stage.until(61)
        (tmp_path / "root/b.html").write_text("b")
        post.trouble = None
        async with publishing(clock, tmp_path, post=post) as stage:
            await stage.until(200)
        assert [said[1:] for said in post.said()] == [(1, ["New /a.html"]), (2, ["New /b.html"])]

    run_virtual(main)


def test_changes_are_kept_for_the_span_and_for_pending_reports(tmp_path: Path) -> None:
    async def story(stage: Round) -> None:
        await stage.register(replace(ROBOT, latency=Span(40, "day")))
        (stage.root / "a.html").write_text("a")
        await stage.until_day(33)
        assert len((await stage.store.changes_after(0))[1]) == 1
        assert await stage.store.changes_since(stage.clock.now() - 30 * DAY, 10) == []
        await stage.until_day(41)
        assert stage.post.said() == [(40 * 24 * 60, 1, ["New /a.html"])]
        assert (await stage.store.changes_after(0))[1] == []

    play(tmp_path, story, scan_every_s=DAY / 2)
