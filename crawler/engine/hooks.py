"""The functions of a caller from Python that choose links and pages. The rules of sites apply before and after them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from crawler.errors import HookError
from crawler.frontier.decide import Outcome, unkept
from crawler.frontier.offers import Offer
from crawler.model import Link, State
from crawler.reasons import Reason, ReasonCode


class FoundLink(NamedTuple):
    """A link on a page of a running crawl, or a redirect, which the rules allow to follow.

    ``rel`` is "canonical" for the canonical URL of the page, and "redirect" for the target of a redirect. ``depth``
    counts the links from a seed to ``target``.
    """

    source: str
    target: str
    anchor: str
    rel: str
    depth: int


class Hooks(msgspec.Struct, frozen=True):
    """``follow`` says whether to follow a link, ``keep`` whether to keep the page of an outcome.

    Both may be ``async``. ``headers`` are sent with every request. An exception of one of the functions is shown as a
    :class:`HookError`.
    """

    follow: Callable[[FoundLink], bool | Awaitable[bool]] | None = None
    keep: Callable[[Outcome], bool | Awaitable[bool]] | None = None
    keep_name: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    async def keep_wanted(self, outcome: Outcome) -> Outcome:
        """``outcome`` without the content of its page if the caller does not want it. Raises :class:`HookError`."""
        keep = self.keep
        if keep is None or outcome.page is None or not outcome.page.facts.is_read:
            return outcome
        wanted = await _asked("keep", self.keep_name, lambda: keep(outcome), outcome.queued.url)
        return outcome if wanted else unkept(outcome, f"keep ({self.keep_name}) said no")

    async def choose(self, outcome: Outcome) -> Outcome:
        """``outcome`` without the links that the caller does not want to follow. Raises :class:`HookError`."""
        if self.follow is None or (outcome.page is None and outcome.state is not State.REDIRECTED):
            return outcome
        links = {link.url: link for link in outcome.links}
        return replace(outcome, offers=tuple([await self._weigh(outcome, links, offer) for offer in outcome.offers]))

    async def _weigh(self, outcome: Outcome, links: dict[str, Link], offer: Offer) -> Offer:
        follow, source = self.follow, outcome.queued.url
        if follow is None or not offer.is_good:
            return offer
        rel = "redirect" if outcome.page is None else "canonical"
        link = links.get(offer.url) or Link(offer.url, "", rel, True)
        found = FoundLink(source, link.url, link.anchor, link.rel, offer.depth)
        name = name_of(follow)
        if await _asked("follow", name, lambda: follow(found), source):
            return offer
        return replace(offer, refusal=Reason(ReasonCode.NOT_FOLLOWED, f"follow ({name})"))


def name_of(function: Callable[..., object]) -> str:
    """The name of a function of the caller, for messages."""
    return getattr(function, "__qualname__", None) or type(function).__name__


async def _asked(role: str, name: str, call: Callable[[], bool | Awaitable[bool]], url: str) -> bool:
    """The answer of a function of the caller about the page ``url``."""
    try:
        answer = call()
        if isawaitable(answer):
            answer = await answer
    except Exception as error:
        raise HookError(
            f"{role} ({name}) raised {type(error).__name__} on {url}: {error}; the URL stays queued"
        ) from error
    if not isinstance(answer, bool):
        raise HookError(f"{role} ({name}) returned {answer!r:.100} on {url}; it must return True or False")
    return answer
