"""The actions of the robot: register, read mail, ask servers. :mod:`crawler.rup.protocol.robot` decides what follows.

The changes that servers report are hints in the store. A later crawl applies scope, robots.txt and pace to them, as to
any URL. The robot stores its state after the hints that belong to it, so a crash repeats work and loses none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from crawler.clock import Clock
from crawler.engine.permission import Closed
from crawler.engine.polite_client import PoliteClient
from crawler.errors import Action, Argument, UsageError
from crawler.frontier.decide import is_temporary
from crawler.frontier.hints import HintCounts
from crawler.model import Failed, Fetched, Purpose, Request
from crawler.reasons import MailCode
from crawler.rup.protocol import answers
from crawler.rup.protocol.forms import GetIndex, ModifyPreferences, Preferences, Register, Unregister
from crawler.rup.protocol.indexnow import MAX_KEY_BYTES, Submission
from crawler.rup.protocol.info import FoundInfo
from crawler.rup.protocol.report import ChangeKind, Report, read_report
from crawler.rup.protocol.robot import PageHint, Server, Unconfirmed, hints_of, joined, may_register
from crawler.rup.protocol.subscription import (
    RawMail,
    Subscription,
    index_of,
    modified,
    read_mails,
    span_fits,
    usual_latency,
    without,
)
from crawler.rup.protocol.units import Span
from crawler.rup.robot.hints import StoreHints
from crawler.rup.robot.indexnow import Inbox
from crawler.rup.robot.recovery import Inquiry
from crawler.rup.robot.requests import NoAnswer, NotOffered, ask, find_offer
from crawler.store.location import DEFAULT_DB, db_argument
from crawler.url import split

if TYPE_CHECKING:
    from crawler.store.sections import Subscriptions


class Mailbox(Protocol):
    """A mailbox that receives reports."""

    async def waiting(self) -> Sequence[RawMail]:
        """Some of the unread mails, oldest first; none if all are read."""
        ...

    async def done(self, letters: Sequence[RawMail]) -> None:
        """Mark these mails as read: the store has committed their effect."""
        ...


@dataclass(slots=True)
class MailTally:
    """Counts of the mails read: reports, other mails, changes, refused paths."""

    reports: int = 0
    ignored: int = 0
    changes: int = 0
    refused: int = 0


@dataclass(slots=True)
class SubmissionTally:
    """Counts of the submissions of IndexNow: taken with ``urls`` in them, refused, and left for the next time."""

    taken: int = 0
    urls: int = 0
    refused: int = 0
    left: int = 0


class Subscriber:
    """One robot on one store. ``tell`` receives messages for the user; ``hint_counts`` is the sum over all hints."""

    def __init__(
        self,
        store: Subscriptions,
        hints: StoreHints,
        client: PoliteClient,
        clock: Clock,
        tell: Callable[[str], None],
        *,
        cgi_elsewhere: bool = False,
        db: str = DEFAULT_DB,
    ) -> None:
        self._store = store
        self._hints = hints
        self.client = client
        self.clock = clock
        self.tell = tell
        self._cgi_elsewhere = cgi_elsewhere
        self.db = db_argument(db)
        self._heard: dict[str, Unconfirmed] = {}  # reports that were read and are not confirmed, by site
        self._partial: set[str] = set()  # sites whose mails were not read completely
        self.hint_counts = HintCounts()

    async def read_submissions(self, inbox: Inbox) -> SubmissionTally:
        """Read the submissions of IndexNow. The URLs count if the key file of their host has the key.

        The key file is requested once for all submissions with it. A submission waits for the next time if its site
        cannot be asked now. One without proof is dropped.
        """
        tally, proven = SubmissionTally(), dict[tuple[str, str], bool | None]()
        waiting = inbox.waiting()
        while (found := await asyncio.to_thread(next, waiting, None)) is not None:
            file, submission = found
            if submission is not None:
                sites, about = await self._hints.sites_of(submission.host), (submission.key_url, submission.key)
                if about not in proven:
                    known = split(submission.key_url).site in sites
                    proven[about] = await self._proves(submission) if known else False
                if proven[about] is None:
                    tally.left += 1
                    continue
                urls = [url for url in submission.urls if split(url).site in sites] if proven[about] else []
                changes = [PageHint(url, ChangeKind.CHANGE, None) for url in urls]
                counts, _ = await self._hints.apply_mail_hints(changes, self.clock.now(), "indexnow")
                self.hint_counts = self.hint_counts.plus(counts)
                tally.urls += len(urls)
            is_taken = submission is not None and bool(proven[submission.key_url, submission.key])
            tally.taken += is_taken
            tally.refused += not is_taken
            await asyncio.to_thread(file.unlink, missing_ok=True)
        return tally

    async def _proves(self, submission: Submission) -> bool | None:
        """Whether the key file of a submission proves it; ``None`` if its site cannot be asked now."""
        request = Request(submission.key_url, Purpose.INDEX_NOW, max_bytes=MAX_KEY_BYTES, truncate=True, any_type=True)
        match await self.client.send(request):
            case Fetched(body=body):
                return submission.is_proven_by(body)
            case Closed(why):
                self.tell(f"{submission.key_url}: {why}")
                return False
            case Failed() as failed:
                return None if is_temporary(failed) else False
            case _:
                return False

    # --- commands -----------------------------------------------------------------------------

    async def info(self, site: str) -> FoundInfo:
        """Ask a site for its offer and store it. Raises :class:`NotOffered`."""
        offered = await find_offer(self.client, site, self.clock)
        await self._store.put_offered(offered)
        return offered

    async def register(self, site: str, email: str, preferences: Preferences) -> Subscription:
        """Register with a site. Raises :class:`NotOffered`, :class:`UsageError`, :class:`NoAnswer`."""
        before = await self._subscription(site)
        if before is not None and before.is_unclear:
            raise UsageError(
                f"a registration with {site} for {before.server.email} had no answer, so it may exist: ask "
                f"the site's operator. `crawler rup unregister {site}{self.db}` forgets it here, and then you can "
                "register again"
            )
        if before is not None and not before.given_up:
            raise UsageError(
                f"already registered with {site} for {before.server.email}; "
                f"`crawler rup modify {site}{self.db}` changes that"
            )
        offered = await self.info(site)
        info, latency = offered.info, preferences.latency or usual_latency(offered.info)
        refusal = may_register(
            info,
            offered.url,
            latency=latency,
            exclude=preferences.exclude or (),
            include_only=preferences.include_only or (),
            elsewhere=self._cgi_elsewhere,
        )
        if refusal is not None:
            raise NotOffered(f"{site}: {refusal}")
        server = Server(
            site,
            info.cgi,
            "",
            email,
            latency,
            self.clock.now(),
            units=info.latencies,
            max_query_span=info.max_query_span,
        )
        wanted = Subscription(server, replace(preferences, latency=latency))
        try:
            return await self.send_register(wanted)
        except NoAnswer as failure:
            if not failure.unclear:
                await self._store.remove(site)
            raise

    async def send_register(self, wanted: Subscription) -> Subscription:
        """Send Register, once.

        The store has the registration before that, with an empty key, in case no answer arrives.
        """
        await self.keep(wanted)
        server, asked_at = wanted.server, self.clock.now()
        try:
            key = answers.read_key(await ask(self.client, server.cgi, Register(server.email, wanted.preferences)))
            if key is None:
                raise NoAnswer(f"{server.cgi}: the answer to Register has no RegistrationKey", unclear=True)
        except NoAnswer as failure:
            if failure.unclear:
                consequence = "; the robot may be registered, and a second request could register it twice"
                raise NoAnswer(*failure.args, consequence, status=failure.status, unclear=True) from None
            raise
        registered = replace(wanted, server=replace(server, key=key, heard_at=asked_at))
        await self.keep(registered)
        return registered

    async def modify(self, site: str, email: str | None, preferences: Preferences) -> Subscription:
        """Change a registration. Preferences that are not named stay.

        Raises :class:`UsageError`, :class:`NotOffered`, :class:`NoAnswer`.
        """
        before = await self._registered(site)
        server = before.server
        offered = await self._store.offered(site) or await self.info(site)
        refusal = may_register(
            offered.info,
            offered.url,
            latency=preferences.latency,
            exclude=preferences.exclude or (),
            include_only=preferences.include_only or (),
            elsewhere=True,  # decided at the registration
        )
        if refusal is not None:
            raise NotOffered(f"{site}: {refusal}")
        asked = ModifyPreferences(server.key, server.email, email, preferences)
        await ask(self.client, server.cgi, asked)
        changed = modified(before, asked)
        await self.keep(changed)
        return changed

    async def unregister(self, site: str, *, forget: bool = False) -> str:
        """Cancel a registration, and return a sentence about the result.

        ``forget``: only delete it here, without a request.

        Raises :class:`UsageError`, :class:`NoAnswer`.
        """
        before = await self._subscription(site)
        if before is None:
            raise UsageError(f"not registered with {site}")
        said = f"no longer registered with {site}"
        if forget:
            said = f"forgot the registration with {site}; the site may still write to {before.server.email}"
        elif before.is_unclear:
            said = f"forgot the registration with {site} that had no answer"
        else:
            try:
                await ask(self.client, before.server.cgi, Unregister(before.server.key, before.server.email))
            except NoAnswer as failure:
                if failure.status not in (400, 404, 410):
                    remedy = ("; ", Argument("forget"), " deletes the registration here only")
                    raise NoAnswer(*failure.args, *remedy, status=failure.status) from None
                said = f"{site} no longer knows this registration ({failure.status}); forgot it here too"
        await self._store.remove(site)
        return said

    async def index(self, site: str, span: Span) -> int:
        """Store a site's index of the last ``span`` as hints; return their number. It needs no registration.

        Raises :class:`NotOffered`, :class:`NoAnswer`.
        """
        known = await self._store.offered(site)
        offered = known if known is not None else await self.info(site)
        asked = GetIndex(span)
        refusal = may_register(offered.info, offered.url, elsewhere=self._cgi_elsewhere) or span_fits(
            asked, offered.info
        )
        if refusal is not None:
            raise NotOffered(f"{site}: {refusal}")
        report = index_of(read_report(await ask(self.client, offered.info.cgi, asked), base=f"{site}/"), site)
        if isinstance(report, str):
            raise NoAnswer(f"{offered.info.cgi}: {report}")
        return await self.apply_index(report, self.clock.now() - span.seconds)

    async def _subscription(self, site: str) -> Subscription | None:
        return next((s for s in await self._store.subscriptions() if s.server.site == site), None)

    async def _registered(self, site: str) -> Subscription:
        found = await self._subscription(site)
        if found is None or found.is_unclear:
            raise UsageError(
                f"not registered with {site}; ",
                Action(f"crawler rup register {site} --email ADDRESS{self.db}", "register(site, email, wishes)"),
                " registers",
            )
        return found

    # --- mail ---------------------------------------------------------------------------------

    async def read_mailbox(self, box: Mailbox) -> MailTally:
        """Read all unread mails. A mail is marked as read only after the store has committed its effect."""
        tally = MailTally()
        while letters := await box.waiting():
            now = self.clock.now()
            known = await self._store.read_before(letter.digest for letter in letters)
            fresh = list({letter.digest: letter for letter in letters if letter.digest not in known}.values())
            read = read_mails(fresh, {s.server.site: s for s in await self._store.subscriptions()}, now=now)
            counts, beyond = await self._hints.apply_mail_hints(read.hints, now)
            self.hint_counts = self.hint_counts.plus(counts)
            partial = beyond | read.partial
            self._hear(read.heard, partial)
            changed = [without(s, read.heard[s.server.site]) if s.server.site in partial else s for s in read.changed]
            await self._store.put(changed, read.rows, now)
            await box.done(letters)
            reports = sum(row.verdict.code is MailCode.TAKEN for row in read.rows)
            tally.reports += reports
            tally.ignored += len(letters) - reports
            tally.changes += sum(row.changes for row in read.rows)
            tally.refused += sum(row.refused for row in read.rows)
        return tally

    def _hear(self, heard: Mapping[str, Unconfirmed], partial: Set[str]) -> None:
        """Remember which reports were read completely. The site's index replaces the others."""
        for site in partial - self._partial:
            self.tell(f"{site}: the mails name too many pages; the robot reads the site's index instead")
        self._partial |= partial
        for site, reports in heard.items():
            if site in self._partial:
                self._heard.pop(site, None)
            else:
                self._heard[site] = joined(self._heard.get(site, {}), reports)

    # --- gaps and silence (3.3.3) -------------------------------------------------------------

    async def catch_up(self, site: str | None = None) -> int:
        """Ask each server for which a question is due (3.3.3), of one site or of all.

        Returns the number of servers asked.
        """
        asked = 0
        for subscription in await self._store.subscriptions():
            if site in (None, subscription.server.site) and not (subscription.is_unclear or subscription.given_up):
                asked += await Inquiry(subscription, self, self._heard.get(subscription.server.site, {})).run()
        return asked

    async def queue(self) -> int:
        """Let the next crawl visit the hinted pages; return the number of visits of known pages."""
        return await self._hints.queue(self.clock.now())

    async def apply_index(self, report: Report, since: float) -> int:
        """Store an index of the changes ``since`` a time as hints; return their number."""
        hints, refused = hints_of(report)
        self.hint_counts = self.hint_counts.plus(await self._hints.apply_index_hints(hints, since, self.clock.now()))
        if refused:
            self.tell(f"{split(report.url_base).site}: ignored {refused} paths of other sites in the index")
        return len(hints)

    async def revisit_site(self, site: str) -> HintCounts:
        """Schedule a visit of every known page of a site."""
        counts = await self._hints.revisit_site(site, self.clock.now())
        self.hint_counts = self.hint_counts.plus(counts)
        return counts

    async def keep(self, subscription: Subscription) -> None:
        """Store a registration."""
        await self._store.put([subscription], (), self.clock.now())
