"""The robot side of the Remote Update Protocol: asks servers, reads mail, and does what
:mod:`crawler.rup.protocol.robot` says.

What it learns are hints: they go to the store, where a later crawl finds them and asks scope, robots.txt and pace like
for any URL. State is kept only after the hints that go with it, so that a crash repeats work and loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Protocol

from crawler.clock import Clock
from crawler.engine.polite_client import PoliteClient
from crawler.errors import UsageError
from crawler.frontier.hints import Heeded
from crawler.rup.protocol import answers
from crawler.rup.protocol.forms import GetIndex, ModifyPreferences, Preferences, Register, Unregister
from crawler.rup.protocol.report import Report, read_report
from crawler.rup.protocol.robot import PageHint, Server, Unconfirmed, hints_of, joined, may_register
from crawler.rup.protocol.subscription import (
    TAKEN,
    FoundInfo,
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
from crawler.rup.robot.recovery import Inquiry, InquiryContext
from crawler.rup.robot.requests import NoAnswer, NotOffered, ask, find_offer
from crawler.store.subscriptions import SubscriptionStore
from crawler.url import split


class Mailbox(Protocol):
    """Where reports arrive."""

    async def waiting(self) -> Sequence[RawMail]:
        """Some of the mails that were not read yet, oldest first; none where there are no more."""
        ...

    async def done(self, letters: Sequence[RawMail]) -> None:
        """What these mails said is committed: they are not to be given again."""
        ...


class Hints(Protocol):
    """Where hints go: to the store, which must have them when the call returns."""

    async def take_mail_hints(self, told: Sequence[PageHint], now: float) -> tuple[Heeded, set[str]]:
        """What mail says; also the sites of which it named more new pages than were taken up."""
        ...

    async def take_index_hints(self, told: Sequence[PageHint], since: float, now: float) -> Heeded:
        """What a site's own index of that time says."""
        ...

    async def revisit_site(self, site: str, now: float) -> Heeded:
        """Every page known of a site is to be looked at again."""
        ...

    async def queue(self, now: float) -> int:
        """Have the next crawl fetch what hints named; how many visits of known pages that are."""
        ...


@dataclass(slots=True)
class MailTally:
    """What came of the mail: mails that brought reports, others, pages named, paths refused."""

    reports: int = 0
    ignored: int = 0
    changes: int = 0
    refused: int = 0


class Subscriber:
    """One robot on one store. ``tell`` gets a sentence on everything of note; ``heeded`` is what all hints came to."""

    def __init__(
        self,
        store: SubscriptionStore,
        hints: Hints,
        client: PoliteClient,
        clock: Clock,
        tell: Callable[[str], None],
        *,
        cgi_elsewhere: bool = False,
    ) -> None:
        self._store = store
        self._hints = hints
        self._client = client
        self._clock = clock
        self._tell = tell
        self._cgi_elsewhere = cgi_elsewhere
        self._heard: dict[str, Unconfirmed] = {}  # reports read and not confirmed yet, by site
        self._partial: set[str] = set()  # sites whose mail was not taken whole
        self.heeded = Heeded()

    # --- what a user asks for -----------------------------------------------------------------

    async def info(self, site: str) -> FoundInfo:
        """What a site offers, asked anew and kept. Raises :class:`NotOffered`."""
        offered = await find_offer(self._client, site, self._clock)
        await self._store.put_offered(offered)
        return offered

    async def register(self, site: str, email: str, preferences: Preferences) -> Subscription:
        """Register with a site. Raises :class:`NotOffered`, :class:`UsageError`, :class:`NoAnswer`."""
        before = await self._subscription(site)
        if before is not None and before.is_unclear:
            raise UsageError(
                f"a registration with {site} for {before.server.email} was sent and not answered, so it may exist: ask "
                f"the site's operator. `crawler rup unregister {site}` forgets it here, and then you can register again"
            )
        if before is not None and not before.given_up:
            raise UsageError(
                f"registered with {site} already, for {before.server.email}; `crawler rup modify` changes that"
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
            self._clock.now(),
            units=info.latencies,
            max_query_span=info.max_query_span,
        )
        wanted = Subscription(server, replace(preferences, latency=latency))
        try:
            return await self._register(wanted)
        except NoAnswer as failure:
            if not failure.unclear:
                await self._store.remove(site)
            raise

    async def _register(self, wanted: Subscription) -> Subscription:
        """Send Register, once. Noted before, with an empty key: one that is never answered must not be forgotten."""
        await self._keep(wanted)
        server, asked_at = wanted.server, self._clock.now()
        try:
            key = answers.read_key(await ask(self._client, server.cgi, Register(server.email, wanted.preferences)))
            if key is None:
                raise NoAnswer(f"{server.cgi}: the answer to Register has no RegistrationKey", unclear=True)
        except NoAnswer as failure:
            if failure.unclear:
                why = f"{failure}; whether it registered us is not known, and asking again could do it twice"
                raise NoAnswer(why, failure.status, unclear=True) from None
            raise
        registered = replace(wanted, server=replace(server, key=key, heard_at=asked_at))
        await self._keep(registered)
        return registered

    async def modify(self, site: str, email: str | None, preferences: Preferences) -> Subscription:
        """Change a registration; what is not named stays.

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
            elsewhere=True,  # that was decided when we registered
        )
        if refusal is not None:
            raise NotOffered(f"{site}: {refusal}")
        asked = ModifyPreferences(server.key, server.email, email, preferences)
        await ask(self._client, server.cgi, asked)
        changed = modified(before, asked)
        await self._keep(changed)
        return changed

    async def unregister(self, site: str, *, forget: bool = False) -> str:
        """Cancel a registration; what came of it. ``forget``: only here, and ask nothing.

        Raises :class:`UsageError`, :class:`NoAnswer`.
        """
        before = await self._subscription(site)
        if before is None:
            raise UsageError(f"not registered with {site}")
        said = f"no longer registered with {site}"
        if forget:
            said = (
                f"forgot the registration with {site}; it was not told, and may go on writing to {before.server.email}"
            )
        elif before.is_unclear:
            said = f"forgot the registration with {site} that was never answered"
        else:
            try:
                await ask(self._client, before.server.cgi, Unregister(before.server.key, before.server.email))
            except NoAnswer as failure:
                if failure.status not in (400, 404, 410):
                    raise NoAnswer(
                        f"{failure}; with --forget the registration is dropped here only", failure.status
                    ) from None
                said = f"{site} knows of no such registration any more ({failure.status}); forgot it here too"
        await self._store.remove(site)
        return said

    async def index(self, site: str, span: Span) -> int:
        """Take what a site's index says of the last ``span`` as hints; how many. Open to everybody.

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
        report = index_of(read_report(await ask(self._client, offered.info.cgi, asked), base=f"{site}/"), site)
        if isinstance(report, str):
            raise NoAnswer(f"{offered.info.cgi}: {report}")
        return await self._heed(report, self._clock.now() - span.seconds)

    async def _subscription(self, site: str) -> Subscription | None:
        return next((s for s in await self._store.subscriptions() if s.server.site == site), None)

    async def _registered(self, site: str) -> Subscription:
        found = await self._subscription(site)
        if found is None or found.is_unclear:
            raise UsageError(f"not registered with {site}; `crawler rup register {site} --email ADDRESS` does it")
        return found

    # --- mail ---------------------------------------------------------------------------------

    async def take_mail(self, box: Mailbox) -> MailTally:
        """Read all that waits. A mail is done with when, and only when, its effect is committed."""
        tally = MailTally()
        while letters := await box.waiting():
            now = self._clock.now()
            known = await self._store.read_before(letter.digest for letter in letters)
            fresh = list({letter.digest: letter for letter in letters if letter.digest not in known}.values())
            read = read_mails(fresh, {s.server.site: s for s in await self._store.subscriptions()}, now=now)
            heeded, beyond = await self._hints.take_mail_hints(read.hints, now)
            self.heeded = self.heeded.plus(heeded)
            partial = beyond | read.partial
            self._hear(read.heard, partial)
            changed = [without(s, read.heard[s.server.site]) if s.server.site in partial else s for s in read.changed]
            await self._store.put(changed, read.rows, now)
            await box.done(letters)
            reports = sum(row.verdict == TAKEN for row in read.rows)
            tally.reports += reports
            tally.ignored += len(letters) - reports
            tally.changes += sum(row.changes for row in read.rows)
            tally.refused += sum(row.refused for row in read.rows)
        return tally

    def _hear(self, heard: Mapping[str, Unconfirmed], partial: Set[str]) -> None:
        """Note which reports were taken whole: the site's index tells what the others say."""
        for site in partial - self._partial:
            self._tell(f"{site}: its mail names more than mail may; its index is to tell")
        self._partial |= partial
        for site, reports in heard.items():
            if site in self._partial:
                self._heard.pop(site, None)
            else:
                self._heard[site] = joined(self._heard.get(site, {}), reports)

    # --- gaps and silence (3.3.3) -------------------------------------------------------------

    async def catch_up(self, site: str | None = None) -> int:
        """Ask the servers that have to be asked, of one site or all: for a gap, for silence, for what was lost. Returns
        how many there were."""
        asked = 0
        means = InquiryContext(
            self._client, self._clock, self._tell, self._register, self._keep, self._heed, self._revisit_site
        )
        for subscription in await self._store.subscriptions():
            if site in (None, subscription.server.site) and not (subscription.is_unclear or subscription.given_up):
                asked += await Inquiry(subscription, means, self._heard.get(subscription.server.site, {})).run()
        return asked

    async def queue(self) -> int:
        """Have the next crawl fetch what was named; how many visits of known pages that are."""
        return await self._hints.queue(self._clock.now())

    async def _heed(self, report: Report, since: float) -> int:
        hints, refused = hints_of(report)
        self.heeded = self.heeded.plus(await self._hints.take_index_hints(hints, since, self._clock.now()))
        if refused:
            self._tell(f"{split(report.url_base).site}: {refused} paths of other sites in its index were passed over")
        return len(hints)

    async def _revisit_site(self, site: str) -> Heeded:
        heeded = await self._hints.revisit_site(site, self._clock.now())
        self.heeded = self.heeded.plus(heeded)
        return heeded

    async def _keep(self, subscription: Subscription) -> None:
        await self._store.put([subscription], (), self._clock.now())
