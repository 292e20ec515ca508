"""The background work of a server: scan the tree, make reports, send them.

One task scans, logs changes and puts due reports into the mail queue. The other task sends the mails in the mail queue.
The store is the only link between them: one transaction makes a report and assigns its number, and a mail leaves the
mail queue only after the mail server has accepted it. If the process is killed in between, it may send a mail twice,
with the same number and id.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from urllib.parse import urlencode

from crawler.clock import Clock
from crawler.engine.tasks import background_task, required_task
from crawler.rup.mail.smtp import Later, Refused, Sent, SmtpMailer
from crawler.rup.protocol.forms import Leave, write_form
from crawler.rup.protocol.mail import Mail, write_mail
from crawler.rup.protocol.patterns import wanted
from crawler.rup.protocol.report import Change, Report
from crawler.rup.protocol.server import (
    UNCONFIRMED_S,
    Registration,
    ServerOffer,
    condense,
    due_at,
    ended,
    may_report,
    stale_at,
)
from crawler.rup.server.own_robots import Allows, OwnRobots
from crawler.rup.server.store import QueuedMail, RupStore
from crawler.rup.server.tree import Tree, scan
from crawler.url import host_of

#: Pauses between attempts to send a mail, in seconds: each is twice the one before, up to the longest.
FIRST_PAUSE_S, MAX_PAUSE_S = 5.0, 3600.0
#: The server gives up a mail after this many seconds (RFC 5321, 4.5.4.1). The robot notices by the next number.
GIVE_UP_S = 5 * 86_400.0
#: Consecutive permanent refusals after which the server deletes a confirmed registration; without confirmation: one.
MOST_REFUSALS = 5

_MAILS_AT_ONCE = 50
_LONGEST_SLEEP_S = 3600.0


@dataclass(slots=True)
class Publisher:
    """Makes and sends reports until :meth:`run` is cancelled; ``note`` tells the operator."""

    store: RupStore
    tree: Tree
    offer: ServerOffer
    robots: OwnRobots
    mailer: SmtpMailer
    clock: Clock
    note: Callable[[str], None]
    sender: str
    scan_every_s: float
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _posted: asyncio.Event = field(default_factory=asyncio.Event)
    _begun: asyncio.Event = field(default_factory=asyncio.Event)
    _trouble: str = ""  # the last error of the mail server, to note it once
    _failures: int = 0  # consecutive attempts at which the mail server was unreachable
    _away_until: float = 0.0  # no attempt before

    async def run(self) -> None:
        """Scan, report and send until cancelled. Raises :class:`StoreError` if the store fails."""
        try:
            async with required_task(self._send_all()):
                await self._watch()
        finally:
            self._begun.set()

    def report_now(self) -> None:
        """Check at once for due reports: a robot has registered or changed its preferences."""
        self._asked.set()

    # --- scanning and reporting -----------------------------------------------------------------

    async def begun(self) -> None:
        """Wait until the first scan is over, or was made before an earlier end of the server.

        No robot is answered before: a change between its crawl and the first scan would be reported to nobody.
        """
        await self._begun.wait()

    async def _watch(self) -> None:
        clock = self.clock
        scan_at = clock.now()
        if await self.store.value("scanned_at") is not None:
            self._begun.set()
        while True:
            if clock.now() >= scan_at:
                await self.scan()
                self._begun.set()
                scan_at = clock.now() + self.scan_every_s
            self._asked.clear()
            next_report_at = await self.report()
            wait_s = max(0.0, min(scan_at, next_report_at) - clock.now())
            await self._wait(self._asked, wait_s)

    async def scan(self) -> None:
        """Log the changes in the tree since the last scan."""
        now = self.clock.now()
        known, previous_at = await self.store.known_files(), await self.store.value("scanned_at")
        try:
            found = await asyncio.to_thread(scan, self.tree, known, now=now, previous_at=previous_at)
        except OSError as error:
            why = error.strerror or error
            self.note(f"{self.tree.root}: cannot be scanned: {why}; next attempt in {self.scan_every_s:g} s")
            return
        async with self.store.transaction():
            await self.store.keep_scan(found, now)
            await self.store.execute("forget_changes", before=now - self.offer.max_query_span.seconds)
            await self.store.execute("forget_ended", before=now - UNCONFIRMED_S)
        if previous_at is None:
            self.note(f"{self.tree.root}: {found.files:,} files; the server reports changes from now on")

    async def report(self) -> float:
        """Put due reports into the mail queue; return when the next one is due, in seconds since the epoch."""
        now = self.clock.now()
        allows: Allows | None = None
        next_at = inf
        log_end = await self.store.log_end()
        for registration in await self.store.registrations():
            due = self._due_at(registration, log_end)
            if due <= now:
                if allows is None:
                    allows = await self.robots.allows()
                if allows is None:
                    return now + self.scan_every_s  # the site's robots.txt is unavailable: no reports meanwhile
                due = await self._report_to(registration.email, allows, now)
            next_at = min(next_at, due)
        return next_at

    def _due_at(self, registration: Registration, log_end: int) -> float:
        dropped_at = stale_at(registration)
        if not may_report(registration):
            return dropped_at
        return min(dropped_at, due_at(registration, changed=registration.reported_to < log_end))

    async def _report_to(self, email: str, allows: Allows, now: float) -> float:
        """Make the due reports to one robot; return when the next one is due."""
        store = self.store
        while True:
            async with store.transaction():
                log_end = await store.log_end()
                registration = await store.registration(email)  # a request may have changed or removed it
                if registration is None or registration.has_ended:
                    return inf
                if now >= stale_at(registration):
                    await store.put(ended(registration))
                    return inf
                due = self._due_at(registration, log_end)
                more = registration.reported_at == now and registration.confirmed and registration.reported_to < log_end
                if due > now and not more:
                    return due
                reported_to, changes = await store.changes_after(registration.reported_to)
                wanted = self._wanted_changes(registration, changes, allows)
                registration = replace(registration, reported_to=reported_to if changes else log_end)
                if wanted or now >= due_at(registration, changed=False):
                    registration = replace(
                        registration, sequence_number=registration.sequence_number + 1, reported_at=now
                    )
                    mail = self._mail(registration, wanted, now)
                    number = registration.sequence_number
                    await store.execute("post", email=email, sequence_number=number, mail=mail, now=now)
                    self._posted.set()
                await store.put(registration)

    def _wanted_changes(
        self, registration: Registration, changes: Sequence[Change], allows: Allows
    ) -> tuple[Change, ...]:
        """The changes that a robot wants to know and may know."""
        allowed = allows(registration.agent)
        site = self.offer.url_base.removesuffix("/")
        wants = wanted(registration.exclude, registration.include_only, site)
        return tuple(condense(change for change in changes if allowed(change.path) and wants(change.path)))

    def _mail(self, registration: Registration, changes: tuple[Change, ...], now: float) -> bytes:
        offer = self.offer
        number = registration.sequence_number
        leave = urlencode(write_form(Leave(registration.token)))
        return write_mail(
            Mail(
                sender=self.sender,
                recipient=registration.email,
                message_id=f"<rup.{number}.{secrets.token_hex(16)}@{host_of(offer.url_base)}>",
                date=now,
                subject=f"Changes at {offer.url_base}, report {number}",
                report=Report(number, offer.url_base, changes),
                unsubscribe_url=f"{offer.cgi}?{leave}",
            )
        )

    # --- sending --------------------------------------------------------------------------------

    async def _send_all(self) -> None:
        while True:
            self._posted.clear()
            next_at = await self.send()
            wait_s = min(_LONGEST_SLEEP_S, max(0.0, next_at - self.clock.now()))
            await self._wait(self._posted, wait_s)

    async def send(self) -> float:
        """Send the due mails in the mail queue; return when the next one is due, in seconds since the epoch."""
        while self.clock.now() >= self._away_until:
            late: set[str] = set()  # addresses whose later mails wait for this one
            mails = await self.store.due_mails(self.clock.now(), _MAILS_AT_ONCE)
            for mail in mails:
                if mail.email not in late and not await self._send(mail):
                    late.add(mail.email)
                if self._failures:
                    break
            if not mails:
                break
        await self.mailer.close()
        next_at: float | None = await self.store.value("next_try_at")
        return inf if next_at is None else max(next_at, self._away_until)

    async def _send(self, mail: QueuedMail) -> bool:
        """Send a mail. False if it must be sent later."""
        outcome = await self.mailer.send(self.sender, mail.email, mail.mail)
        now = self.clock.now()
        if isinstance(outcome, Later) and not outcome.reached:
            self._away_until = now + _pause_s(self._failures)
            self._failures += 1
        else:
            self._failures = 0
        match outcome:
            case Sent():
                async with self.store.transaction():
                    await self.store.sent(mail, now)
                self.note(f"report {mail.sequence_number} sent to {mail.email}")
                self._trouble = ""
            case Refused(why):
                self.note(f"report {mail.sequence_number} to {mail.email} was refused: {why}")
                await self._give_up(mail)
            case Later(why):
                if now - mail.made_at >= GIVE_UP_S:
                    self.note(f"report {mail.sequence_number} to {mail.email} given up: {why}")
                    await self._give_up(mail)
                elif outcome.reached:
                    async with self.store.transaction():
                        await self.store.execute("postpone", id=mail.id, until=now + _pause_s(mail.tries))
                if why != self._trouble:
                    self._trouble = why
                    waiting: int = await self.store.value("waiting")
                    self.note(f"mail server: {why}; {waiting:,} reports wait")
        return not isinstance(outcome, Later)

    async def _give_up(self, mail: QueuedMail) -> None:
        store = self.store
        async with store.transaction():
            refusals = await store.drop(mail)
            registration = await store.registration(mail.email)
            if registration is None or registration.has_ended:
                return
            if not registration.confirmed or refusals >= MOST_REFUSALS:
                await store.put(ended(registration))
                self.note(f"{mail.email} accepts no mail: registration deleted")

    async def _wait(self, event: asyncio.Event, most_s: float) -> None:
        """Wait for an event, at most so many seconds; then it is set, too."""

        async def set_later() -> None:
            await self.clock.sleep(most_s)
            event.set()

        async with background_task(set_later()):
            await event.wait()


def _pause_s(tries: int) -> float:
    """The pause after so many vain attempts before the last one."""
    return min(FIRST_PAUSE_S * 2.0 ** min(tries, 30), MAX_PAUSE_S)
