"""The actions of the robot: register, read mail, ask servers for lost reports (Internet-Draft of 1998, 3.3.3).

The changes that servers report are hints in the store. A later crawl applies scope, robots.txt and pace to them, as to
any URL. The robot stores its state after the hints that belong to it, so a crash repeats work and loses none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Container, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import asdict

from crawler.clock import Clock
from crawler.engine.permission import Closed
from crawler.engine.polite_client import PoliteClient
from crawler.errors import Action, Argument, UsageError
from crawler.frontier.decide import is_temporary
from crawler.frontier.hints import HintCounts
from crawler.model import Failed, Fetched, Purpose, Request
from crawler.reasons import MailCode
from crawler.rup.protocol import answers
from crawler.rup.protocol.forms import (
    GetIndex,
    GetSequenceNumber,
    ModifyPreferences,
    Preferences,
    Register,
    Unregister,
)
from crawler.rup.protocol.indexnow import MAX_KEY_BYTES, Submission
from crawler.rup.protocol.info import FoundInfo
from crawler.rup.protocol.report import ChangeKind, Unreadable, read_report
from crawler.rup.protocol.subscription import (
    Heard,
    OpenedMail,
    PageHint,
    RawMail,
    Subscription,
    confirmed,
    due_question,
    hints_of,
    index_span,
    joined,
    may_register,
    missing,
    noticed,
    open_mail,
    recovered,
    unanswered,
    usual_latency,
)
from crawler.rup.protocol.units import Span
from crawler.rup.robot.hints import StoreHints
from crawler.rup.robot.indexnow import Inbox
from crawler.rup.robot.requests import NoAnswer, NotOffered, ask, find_offer
from crawler.store.location import DEFAULT_DB, db_argument
from crawler.url import split

if TYPE_CHECKING:
    from crawler.store.sections import Subscriptions


#: The mails that are read before the store commits their effect, and their octets: about that many.
_AT_ONCE, _BYTES_AT_ONCE = 200, 32 * 2**20


class Mailbox(Protocol):
    """A mailbox that receives reports."""

    def waiting(self) -> AsyncGenerator[RawMail, None]:
        """Yield unread mails, oldest first."""
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
    """One robot on one store. ``tell`` receives messages for the user."""

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
        self._client = client
        self._clock = clock
        self.tell = tell
        self._cgi_elsewhere = cgi_elsewhere
        self._db = db_argument(db)
        self._heard: dict[str, Heard] = {}  # reports that were read and are not confirmed, by site

    @property
    def hint_counts(self) -> HintCounts:
        """The sum over all hints."""
        return self._hints.counts

    async def read_submissions(self, inbox: Inbox) -> SubmissionTally:
        """Read the submissions of IndexNow. The URLs count if the key file of their host has the key.

        The key file is requested once for all submissions with it. A submission waits for the next time if its site
        cannot be asked now. One without proof is dropped.
        """
        tally, proven = SubmissionTally(), dict[tuple[str, str], bool | None]()
        waiting = inbox.waiting()
        while (found := await asyncio.to_thread(next, waiting, None)) is not None:
            file, submission = found
            is_proven: bool | None = False
            if submission is not None:
                sites, about = await self._hints.sites_of(submission.host), (submission.key_url, submission.key)
                if about not in proven:
                    proven[about] = await self._proves(submission, sites)
                is_proven = proven[about]
                urls = [url for url in submission.urls if split(url).site in sites] if is_proven else []
                changes = [PageHint(url, ChangeKind.CHANGE, None) for url in urls]
                await self._hints.apply_mail_hints(changes, self._clock.now(), "indexnow")
                tally.urls += len(urls)
            if is_proven is None:
                tally.left += 1
                continue
            tally.taken += is_proven
            tally.refused += not is_proven
            await asyncio.to_thread(file.unlink, missing_ok=True)
        return tally

    async def _proves(self, submission: Submission, sites: Container[str]) -> bool | None:
        """Whether the key file of a submission proves it; ``None`` if its site cannot be asked now."""
        if split(submission.key_url).site not in sites:
            return False
        request = Request(submission.key_url, Purpose.INDEX_NOW, max_bytes=MAX_KEY_BYTES, truncate=True, any_type=True)
        match await self._client.send(request):
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
        offered = await find_offer(self._client, site, self._clock)
        await self._store.put_offered(offered)
        return offered

    async def register(self, site: str, email: str, preferences: Preferences) -> Subscription:
        """Register with a site. Raises :class:`NotOffered`, :class:`UsageError`, :class:`NoAnswer`."""
        before = await self._subscription(site)
        if before is not None and before.is_unclear:
            raise UsageError(
                f"a registration with {site} for {before.email} had no answer, so it may exist: ask "
                f"the site's operator. `crawler rup unregister {site}{self._db}` forgets it here, and then you can "
                "register again"
            )
        if before is not None and not before.given_up:
            raise UsageError(
                f"already registered with {site} for {before.email}; `crawler rup modify {site}{self._db}` changes that"
            )
        offered = await self.info(site)
        _require(may_register(offered, preferences, elsewhere=self._cgi_elsewhere), site)
        info = offered.info
        wanted = Subscription(
            site=site,
            cgi=info.cgi,
            key="",
            email=email,
            latency=usual_latency(info),
            registered_at=self._clock.now(),
            units=info.latencies,
            max_query_span=info.max_query_span,
        )
        try:
            return await self._send_register(wanted.with_preferences(preferences))
        except NoAnswer as failure:
            if not failure.unclear:
                await self._store.remove(site)
            raise

    async def _send_register(self, wanted: Subscription) -> Subscription:
        """Send Register, once.

        The store has the registration before that, with an empty key, in case no answer arrives.
        """
        await self._keep(wanted)
        asked_at = self._clock.now()
        lists = {"exclude": wanted.exclude or None, "include_only": wanted.include_only or None}
        try:
            request = Register(wanted.email, latency=wanted.latency, **lists)
            key = answers.read_key(await ask(self._client, wanted.cgi, request))
            if key is None:
                raise NoAnswer(f"{wanted.cgi}: the answer to Register has no RegistrationKey", unclear=True)
        except NoAnswer as failure:
            if failure.unclear:
                consequence = "; the robot may be registered, and a second request could register it twice"
                raise NoAnswer(*failure.args, consequence, status=failure.status, unclear=True) from None
            raise
        registered = replace(wanted, key=key, heard_at=asked_at)
        await self._keep(registered)
        return registered

    async def modify(self, site: str, email: str | None, preferences: Preferences) -> Subscription:
        """Change a registration. Preferences that are not named stay.

        Raises :class:`UsageError`, :class:`NotOffered`, :class:`NoAnswer`.
        """
        before = await self._subscription(site)
        if before is None or before.is_unclear:
            command = f"crawler rup register {site} --email ADDRESS{self._db}"
            remedy = Action(command, "register(site, email, wishes)")
            raise UsageError(f"not registered with {site}; ", remedy, " registers")
        offered = await self._store.offered(site) or await self.info(site)
        _require(may_register(offered, preferences, elsewhere=True), site)  # the registration decided on the CGI
        request = ModifyPreferences(before.key, before.email, email, **asdict(preferences))
        await ask(self._client, before.cgi, request)
        changed = replace(before.with_preferences(preferences), email=email or before.email)
        await self._keep(changed)
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
            said = f"forgot the registration with {site}; the site may still write to {before.email}"
        elif before.is_unclear:
            said = f"forgot the registration with {site} that had no answer"
        else:
            try:
                await ask(self._client, before.cgi, Unregister(before.key, before.email))
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
        offered = await self._store.offered(site) or await self.info(site)
        _require(may_register(offered, Preferences(), elsewhere=self._cgi_elsewhere), site)
        most = offered.info.max_query_span
        if most is not None and span.seconds > most.seconds:
            raise NotOffered(f"{site}: the server's index reaches back {most}")
        return (await self._read_index(offered.info.cgi, site, span))[0]

    async def _subscription(self, site: str) -> Subscription | None:
        return next((known for known in await self._store.subscriptions() if known.site == site), None)

    async def _keep(self, subscription: Subscription) -> None:
        await self._store.put([subscription], (), self._clock.now())

    # --- mail ---------------------------------------------------------------------------------

    async def read_mailbox(self, box: Mailbox) -> MailTally:
        """Read all unread mails. A mail is marked as read only after the store has committed its effect.

        The reports of a server are applied in the order of their numbers.
        """
        tally = MailTally()
        while letters := await _some(box):
            now = self._clock.now()
            known = {each.site: each for each in await self._store.subscriptions()}
            opened = {mail.row.digest: mail for mail in (open_mail(letter, known) for letter in letters)}
            for digest in await self._store.read_before(opened):
                del opened[digest]
            mails = sorted(opened.values(), key=lambda mail: mail.row.sequence_number or 0)
            beyond = await self._hints.apply_mail_hints([hint for mail in mails for hint in mail.hints], now)
            changed = [noticed(known[site], heard) for site, heard in self._hear(mails, beyond).items()]
            rows = [mail.row for mail in mails]
            await self._store.put(changed, rows, now)
            await box.done(letters)
            reports = sum(row.verdict.code is MailCode.TAKEN for row in rows)
            tally.reports += reports
            tally.ignored += len(letters) - reports
            tally.changes += sum(row.changes for row in rows)
            tally.refused += sum(row.refused for row in rows)
        return tally

    def _hear(self, mails: Sequence[OpenedMail], beyond: set[str]) -> dict[str, Heard]:
        """Remember the reports in mails, for the question to their servers; return them by site.

        ``beyond`` are sites whose mails name more pages than the robot accepts. Their index replaces the mails.
        """
        heard: dict[str, Heard] = {}
        for mail in mails:
            site, number = mail.row.site, mail.row.sequence_number
            if mail.row.verdict.code is MailCode.TAKEN and site is not None and number is not None:
                heard[site] = joined(heard.get(site, {}), {number: mail.is_whole and site not in beyond})
        for site, reports in heard.items():
            if not all(reports.values()):
                self.tell(f"{site}: the mails name too many pages; the robot reads the site's index instead")
            self._heard[site] = joined(self._heard.get(site, {}), reports)
        return heard

    # --- gaps and silence (3.3.3) -------------------------------------------------------------

    async def catch_up(self, site: str | None = None) -> int:
        """Ask each server for which a question is due, of one site or of all; return the number of servers asked."""
        asked = 0
        for known in await self._store.subscriptions():
            if site not in (None, known.site) or known.is_unclear or known.given_up:
                continue
            if why := due_question(known, now=self._clock.now()):
                self._tell(known, f"asking for the sequence number: {why}")
                await self._keep(replace(await self._ask_number(known), question=""))
                asked += 1
        return asked

    async def _ask_number(self, known: Subscription) -> Subscription:
        """Ask for the number of the last report, and recover the changes that are missing."""
        now = self._clock.now()
        try:
            answer = await ask(self._client, known.cgi, GetSequenceNumber(known.key, known.email))
        except NoAnswer as failure:
            if failure.status == 400:
                return await self._register_again(known)
            if failure.status == 501:  # the server has no numbers, so the robot recovers without them
                return await self._recover(known, known.sequence_number, str(failure), now)
            return self._unanswered(known, failure)
        number = answers.read_sequence_number(answer)
        if number is None:
            return self._unanswered(known, NoAnswer(f"{known.cgi}: the answer has no SequenceNumber"))
        if known.lost:
            return await self._revisit(known, number, known.lost, now)
        heard = self._heard.get(known.site, {})
        if why := missing(known, number, heard):
            return await self._recover(known, number, why, now)
        self._tell(known, f"no report was lost: {number} in all")
        return confirmed(known, number, now=now)

    async def _recover(self, known: Subscription, number: int, why: str, now: float) -> Subscription:
        """Learn the changes that are missing from the site's index, or visit the whole site."""
        span = index_span(known, now=now)
        if isinstance(span, str):
            return await self._revisit(known, number, f"{why}; {span}", now)
        try:
            changes, is_whole = await self._read_index(known.cgi, known.site, span)
        except NoAnswer as failure:
            if failure.status is None or failure.unclear:
                return self._unanswered(known, failure)
            return await self._revisit(known, number, f"{why}; {failure}", now)
        self._tell(known, f"{why}; the index of {span} names {changes} pages")
        if not is_whole:
            return await self._revisit(known, number, f"{why}; the index is too long", now)
        return recovered(known, number, now=now)

    async def _revisit(self, known: Subscription, number: int, why: str, now: float) -> Subscription:
        moved = await self._hints.revisit_site(known.site, self._clock.now())
        self._tell(known, f"{why}; all {moved} pages of the site are scheduled for a visit")
        return recovered(known, number, now=now)

    async def _register_again(self, known: Subscription) -> Subscription:
        """Register again with the same preferences, after the server refused the key.

        The numbers start again, and the server may have lost its log of changes.
        """
        why = "the server does not know our key"
        self._tell(known, f"{why}: registering again")
        fresh = replace(known, key="", sequence_number=0, question="", lost=why)
        try:
            registered = await self._send_register(fresh)
        except NoAnswer as failure:
            if failure.unclear:  # only the operator of the server knows whether the robot is registered
                self._tell(known, str(failure))
                return replace(fresh, given_up=f"no answer to Register ({failure})", lost="")
            await self._keep(known)
            if failure.status is None:
                return self._unanswered(known, failure)
            why += " and refuses a new registration"
            self._tell(
                known,
                f"given up: {why}; `crawler rup register {known.site} --email {known.email}{self._db}` registers again",
            )
            return replace(known, given_up=why, lost="", heard_at=self._clock.now())
        why += ", so it may have lost its log as well"
        return await self._revisit(registered, 0, why, registered.heard_at)

    def _unanswered(self, known: Subscription, failure: NoAnswer) -> Subscription:
        self._tell(known, f"{failure}; the robot asks again later")
        return unanswered(known, str(failure), now=self._clock.now())

    def _tell(self, known: Subscription, what: str) -> None:
        self.tell(f"{known.site}: {what}")

    async def queue(self) -> int:
        """Let the next crawl visit the hinted pages; return the number of visits of known pages."""
        return await self._hints.queue(self._clock.now())

    async def _read_index(self, cgi: str, site: str, span: Span) -> tuple[int, bool]:
        """Ask for the changes in ``span`` and store them as hints; return their number, and whether they are all.

        Raises :class:`NoAnswer`, with a status if the server answered.
        """
        report = read_report(await ask(self._client, cgi, GetIndex(span)), base=f"{site}/")
        if isinstance(report, Unreadable):
            raise NoAnswer(f"{cgi}: not an index: {report.why}", status=200)
        if split(report.url_base).site != site:
            raise NoAnswer(f"{cgi}: the index of another site: {report.url_base}", status=200)
        hints, refused = hints_of(report)
        now = self._clock.now()
        await self._hints.apply_index_hints(hints, now - span.seconds, now)
        if refused:
            self.tell(f"{site}: ignored {refused} paths of other sites in the index")
        return len(hints), not report.skipped


async def _some(box: Mailbox) -> list[RawMail]:
    """Some of the unread mails, oldest first; none if all are read."""
    letters: list[RawMail] = []
    size = 0
    async with aclosing(box.waiting()) as waiting:
        async for letter in waiting:
            letters.append(letter)
            size += len(letter.octets or b"")
            if len(letters) >= _AT_ONCE or size >= _BYTES_AT_ONCE:
                break
    return letters


def _require(refusal: str | None, site: str) -> None:
    if refusal is not None:
        raise NotOffered(f"{site}: {refusal}")
