"""Asks a server for lost reports (Internet-Draft of 1998, 3.3.3).

:mod:`crawler.rup.protocol.robot` decides what to ask; this module sends the requests, and has
:class:`crawler.rup.robot.subscribe.Subscriber` store the results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from crawler.rup.protocol import answers
from crawler.rup.protocol.forms import GetIndex, GetSequenceNumber
from crawler.rup.protocol.report import read_report
from crawler.rup.protocol.robot import (
    AskIndex,
    AskNumber,
    GiveUp,
    NextStep,
    RegisterAgain,
    Reindex,
    Server,
    Unconfirmed,
    WaitForReport,
    ask_at,
    on_number,
    on_refused,
    on_time,
    on_unreachable,
    recover,
    recovered,
    silent_at,
)
from crawler.rup.protocol.subscription import Subscription, index_of
from crawler.rup.robot.requests import NoAnswer, ask

if TYPE_CHECKING:
    from crawler.rup.robot.subscribe import Subscriber


class Inquiry:
    """The questions to one server, until the next step is to wait."""

    def __init__(self, subscription: Subscription, subscriber: Subscriber, heard: Unconfirmed) -> None:
        self._subscription = subscription
        self._subscriber = subscriber
        self._heard = heard
        self._number = 0  # the server's last answer, to the question at:
        self._asked_at = 0.0

    @property
    def _server(self) -> Server:
        return self._subscription.server

    async def run(self) -> bool:
        """Ask the server if a question is due; return whether one was."""
        lost = self._subscription.lost if self._server.quiet == 0 else ""  # an unreachable server is asked later
        now = self._subscriber.clock.now()
        why = (self._subscription.question if now >= ask_at(self._server) else "") or lost
        following: NextStep = AskNumber(why) if why else on_time(self._server, now=now)
        if isinstance(following, WaitForReport):
            return False
        while not isinstance(following, WaitForReport):
            following = await self._do(following)
        await self._keep(replace(self._subscription, question=""))
        return True

    async def _do(self, following: AskNumber | AskIndex | Reindex | RegisterAgain | GiveUp) -> NextStep:
        match following:
            case AskNumber(why):
                self._tell(f"asking for the sequence number: {why}")
                return await self._ask_number()
            case AskIndex(_, why):
                return await self._ask_index(following, why)
            case Reindex(why):
                pages = await self._subscriber.revisit_site(self._server.site)
                self._tell(f"{why}; all {pages.moved} pages of the site are scheduled for a visit")
                return await self._recovered()
            case RegisterAgain(why):
                return await self._register_again(why)
            case GiveUp(why):
                again = f"{self._server.site} --email {self._server.email}{self._subscriber.db}"
                self._tell(f"given up: {why}; `crawler rup register {again}` registers again")
                self._subscription = replace(self._subscription, given_up=why, lost="")
                return WaitForReport(float("inf"))
            case _:
                assert_never(following)

    async def _ask_number(self) -> NextStep:
        server = self._server
        self._asked_at = self._subscriber.clock.now()
        try:
            answer = await ask(self._subscriber.client, server.cgi, GetSequenceNumber(server.key, server.email))
        except NoAnswer as failure:
            if failure.status == 400:
                return self._follow(*on_refused(server, now=self._asked_at))
            if failure.status == 501:  # the server has no numbers, so the robot recovers without them
                self._number = server.sequence_number
                return recover(server, str(failure), now=self._asked_at)
            return self._unreached(failure)
        self._subscription = replace(self._subscription, unreached="")
        number = answers.read_sequence_number(answer)
        if number is None:
            return self._unreached(NoAnswer(f"{server.cgi}: the answer has no SequenceNumber"))
        self._number = number
        if self._subscription.lost:
            return Reindex(self._subscription.lost)
        after, following = on_number(server, number, self._heard, now=self._asked_at)
        if isinstance(following, WaitForReport):
            self._tell(f"no report was lost: {number} in all")
            if (
                self._subscription.question and number == server.sequence_number
            ):  # the reason of the question was a mail, not silence
                after = replace(after, quiet=server.quiet)
                following = WaitForReport(silent_at(after))
            return self._follow(after, following)
        return following  # the state changes only after the recovery

    async def _ask_index(self, following: AskIndex, why: str) -> NextStep:
        server = self._server
        try:
            answer = await ask(self._subscriber.client, server.cgi, GetIndex(following.span))
        except NoAnswer as failure:
            if failure.status is None or failure.unclear:
                return self._unreached(failure)
            return Reindex(f"{why}; {failure}")
        report = index_of(read_report(answer, base=f"{server.site}/"), server.site)
        if isinstance(report, str):
            return Reindex(f"{why}; {report}")
        changes = await self._subscriber.apply_index(report, self._subscriber.clock.now() - following.span.seconds)
        self._tell(f"{why}; the index of {following.span} names {changes} pages")
        if report.skipped:
            return Reindex(f"{why}; the index is too long")
        return await self._recovered()

    async def _recovered(self) -> WaitForReport:
        server = recovered(self._server, self._number, now=self._asked_at)
        self._subscription = replace(self._subscription, server=server, lost="")
        return WaitForReport(0.0)

    async def _register_again(self, why: str) -> NextStep:
        """Register again with the same preferences.

        The numbers start again, and the server may have lost its log of changes.
        """
        self._tell(f"{why}: registering again")
        known = self._subscription
        fresh = replace(self._server, key="", sequence_number=0, digest="", refused=0)
        try:
            wanted = replace(known, server=fresh, question="", lost=why)
            self._subscription = await self._subscriber.send_register(wanted)
        except NoAnswer as failure:
            if failure.unclear:  # only the operator of the server knows whether the robot is registered
                self._tell(str(failure))
                self._subscription = replace(known, server=fresh, given_up=f"no answer to Register ({failure})")
                return WaitForReport(float("inf"))
            await self._keep(known)
            if failure.status is None:
                self._subscription = replace(known, server=replace(known.server, refused=0))
                return self._unreached(failure)
            return self._follow(*on_refused(known.server, now=self._subscriber.clock.now()))
        self._number, self._asked_at = 0, self._server.heard_at
        return Reindex(f"{why}, so it may have lost its log as well")

    def _unreached(self, failure: NoAnswer) -> NextStep:
        self._tell(f"{failure}; the robot asks again later")
        self._subscription = replace(self._subscription, unreached=str(failure)[:200])
        return self._follow(*on_unreachable(self._server, now=self._subscriber.clock.now()))

    def _follow(self, server: Server, following: NextStep) -> NextStep:
        self._subscription = replace(self._subscription, server=server)
        return following

    async def _keep(self, subscription: Subscription) -> None:
        self._subscription = subscription
        await self._subscriber.keep(subscription)

    def _tell(self, what: str) -> None:
        self._subscriber.tell(f"{self._server.site}: {what}")
