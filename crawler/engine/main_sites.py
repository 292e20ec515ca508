"""The main sites of mirrors, as ``Host`` lines name them and as answers contradict them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crawler.clock import Clock
from crawler.engine.outbox import Outbox
from crawler.frontier.decide import Outcome
from crawler.model import RobotsAction, RobotsCopy, State
from crawler.robots.mirrors import Contradiction, Cycle, Main, main_of
from crawler.robots.readings import SiteRules
from crawler.store.rows import Refuted
from crawler.url import split

if TYPE_CHECKING:
    from crawler.store.sections import Store

_CHECK_EVERY_S = 10.0
_UNREACHABLE_AFTER = 4  # failures of a main site's robots.txt, within some seven minutes: then its mirrors are crawled
#: The meanings of a main site's robots.txt under which the site is not crawled, now or later.
_GONE = frozenset({RobotsAction.GIVEN_UP, RobotsAction.UNREACHABLE, RobotsAction.UNTRUSTED})


class MainSites:
    """The main site of each mirror, and the ``Host`` lines that are ignored.

    Invariants:

    1. A ``Host`` line that was contradicted is ignored until the file names another site.
    2. A mirror whose copy is being committed is not dropped because the store does not know it yet.
    """

    def __init__(self, store: Store, clock: Clock, outbox: Outbox) -> None:
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._by_mirror: dict[str, str] = {}  # few, compared with the sites crawled
        self._mirrors: Counter[str] = Counter()  # how many each main site has
        self._refuted: dict[str, Refuted] = {}  # by mirror
        self._being_committed: set[str] = set()  # mirrors
        self._checked_at = -math.inf

    async def remember(self) -> None:
        """Load the mirrors that earlier runs have found."""
        heard = await self._store.heard()
        self.learn(heard.mirrors)
        self.refute(heard.refuted)

    def learn(self, mirrors: Iterable[tuple[str, str]]) -> None:
        """Add mirrors that other workers have found, as pairs (mirror, main site)."""
        for mirror, main_site in mirrors:
            self._put(mirror, main_site)
            self._refuted.pop(mirror, None)

    def refute(self, refuted: Iterable[Refuted]) -> None:
        """Ignore the ``Host`` lines of mirrors whose main sites have turned out to be none."""
        for each in refuted:
            self._refuted[each.site] = each
            if self._by_mirror.get(each.site) == each.main_site:
                self._drop(each.site)

    async def catch_up(self, site: str) -> None:
        """If ``site`` is a mirror, drop the mirrors that other workers have found to be none; every ten seconds."""
        if site not in self._by_mirror or self._store.lease_s is None:
            return
        if self._clock.now() < self._checked_at + _CHECK_EVERY_S:
            return
        self._checked_at = self._clock.now()
        known = {mirror: main for mirror, main in self._by_mirror.items() if mirror not in self._being_committed}
        there = {mirror for mirror, _ in (await self._store.heard()).mirrors}
        for mirror in known.keys() - there:
            if self._by_mirror.get(mirror) == known[mirror]:  # this worker has not learnt of it again meanwhile
                self._drop(mirror)

    def main_of(self, site: str) -> Main | Cycle:
        """The end of the chain of ``Host`` claims that begins at ``site``, as far as it is known."""
        return main_of(site, self._by_mirror.get)

    def is_main(self, site: str) -> bool:
        """Whether a site is the main site of any mirror. Known without a search."""
        return site in self._mirrors

    def ignored(self, site: str) -> str | None:
        """The site that the ``Host`` line of ``site`` names, if that line is ignored."""
        refuted = self._refuted.get(site)
        return None if refuted is None else refuted.main_site

    def can_be_confirmed(self, site: str, named: str) -> bool:
        """Whether the ``Host`` line of ``site`` that names ``named`` is to be judged: no answer has contradicted it."""
        refuted = self._refuted.get(site)
        return refuted is None or refuted.main_site != named or refuted.contradiction is Contradiction.OTHER_DOMAIN

    def judge(self, site: str, named: str, *, is_confirmed: bool) -> None:
        """Obey the ``Host`` line of ``site`` if it is confirmed, by the domain or by what ``named`` says of itself."""
        if is_confirmed:
            self._refuted.pop(site, None)
        else:
            self._refuted[site] = Refuted(site, named, Contradiction.OTHER_DOMAIN)

    @contextmanager
    def declared(
        self, site: str, copy: RobotsCopy, rules: SiteRules | None
    ) -> Iterator[tuple[str | None, Refuted | None]]:
        """Take up the main site of ``site`` by a new copy. Returns it, or else the ``Host`` line that is ignored.

        ``rules`` are those of the copy if it is a file. The caller commits the copy inside the context.
        """
        self._suspect_if_unreachable(site, copy)
        if copy.action is not RobotsAction.DEFER:  # else the last file that was fetched counts
            if rules is None or rules.named_site is None:
                self._refuted.pop(site, None)
            if rules is None or rules.main_site is None:
                self._drop(site)
            else:
                self._put(site, rules.main_site)
        main_site = self._by_mirror.get(site)
        self._being_committed.add(site)
        try:
            yield main_site, None if main_site else self._refuted.get(site)
        finally:
            self._being_committed.discard(site)

    def note_outcome(self, outcome: Outcome) -> None:
        """Put the evidence of ``outcome`` about main sites into the outbox, which has ``outcome`` already."""
        if outcome.state not in (State.FAILED, State.REDIRECTED):
            return
        site = split(outcome.queued.url).site
        if not self.is_main(site):
            return
        if outcome.state is State.REDIRECTED and outcome.target is not None:
            mirror = split(outcome.target).site
            named = self._by_mirror.get(mirror)
            if named is not None and mirror != site and self.main_of(mirror) == Main(site):
                self._outbox.refute(Refuted(mirror, named, Contradiction.REDIRECTS))
                return
        self._outbox.suspect_main(site, Contradiction.NO_PAGE)

    def _suspect_if_unreachable(self, site: str, copy: RobotsCopy) -> None:
        """Let the store judge a main site whose robots.txt has had no usable answer several times."""
        gone = copy.action in _GONE
        is_silent = copy.failures >= _UNREACHABLE_AFTER and not copy.status.isdigit()  # an error status is an answer
        if (gone or is_silent) and self.is_main(site):
            self._outbox.suspect_main(site, Contradiction.UNREACHABLE)

    def _put(self, mirror: str, main_site: str) -> None:
        self._drop(mirror)
        self._by_mirror[mirror] = main_site
        self._mirrors[main_site] += 1

    def _drop(self, mirror: str) -> None:
        main_site = self._by_mirror.pop(mirror, None)
        if main_site is not None:
            self._mirrors[main_site] -= 1
            if not self._mirrors[main_site]:
                del self._mirrors[main_site]
