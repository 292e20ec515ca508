"""Taking up a URL that was found: new, known already, or known and now seen in a better light."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from crawler.frontier.operator import BLOCKED
from crawler.model import Kind, State
from crawler.reasons import CONTACT, DEPTH, NOFOLLOW, REDIRECTS, SAMPLE, SCOPE, TRAP, TYPE

#: Exclusions by circumstance, which a better offer of the same URL lifts (another link to it that may be followed,
#: a shorter way to it, a way outside the redirect chain that had grown too long; a scope that admits it by now,
#: since a mirror's main host was adopted, or as where a seed redirects to; a URL that was not drawn, but where one that
#: was leads to; a site that is blocked no more).
_LIFTED_BY_BETTER_OFFER = (NOFOLLOW, DEPTH, REDIRECTS, SCOPE, CONTACT, TRAP, SAMPLE, BLOCKED)


class Offer(NamedTuple):
    """A URL as somebody found it. ``refusal`` is the reason to exclude it, ``None`` to queue it."""

    url: str
    depth: int
    refusal: str | None = None
    hops: int = 0  # redirects in a row that led here
    seed: bool = False
    kind: Kind = Kind.PAGE
    lastmod: float | None = None  # as a sitemap says, in seconds since the epoch

    @property
    def is_good(self) -> bool:
        """Whether no rule refuses it: then it counts as a way, though nobody may go it while its site is blocked."""
        return self.refusal is None or self.refusal == BLOCKED


@dataclass(frozen=True, slots=True)
class Known:
    """What the store has of an offered URL."""

    state: State
    reason: str
    depth: int
    hops: int


@dataclass(frozen=True, slots=True)
class Change:
    """What an offer changes in a known URL: its depth, and whether it is queued after all."""

    depth: int
    hops: int
    requeue: bool
    reason: str
    seed: bool = False  # it counts as a seed from now on


def weigh(known: Known, offer: Offer) -> Change | None:
    """What ``offer`` changes, or ``None``.

    The depth of a URL is the length of the shortest way known, so that neither the order in which
    pages arrive nor a restart decides what ``--max-depth`` lets in.
    """
    lifted = (*_LIFTED_BY_BETTER_OFFER, TYPE) if offer.kind is Kind.SITEMAP else _LIFTED_BY_BETTER_OFFER
    liftable = known.state is State.EXCLUDED and known.reason.startswith(lifted)
    closer = offer.depth < known.depth and offer.is_good
    if liftable and offer.is_good and (offer.refusal is None or known.reason != BLOCKED):
        # A way that the scope refused was a way; one that may not be followed was none.
        depth = min(known.depth, offer.depth) if known.reason.startswith((SCOPE, CONTACT)) else offer.depth
        return Change(depth, offer.hops, offer.refusal is None, offer.refusal or "", offer.seed)
    if closer:
        return Change(offer.depth, min(known.hops, offer.hops), False, known.reason, offer.seed)
    return None


def passed_on(known: Known, depth: int, max_depth: int | None) -> Offer:
    """What a page that has come nearer to the seeds offers to what it links to, or redirects to: ``depth``.

    These links may be followed, which is all that was missing to a URL known from a nofollow link. Whatever else could
    be lifted was refused for what the URL is, and still is.
    """
    is_admitted = (max_depth is None or depth <= max_depth) and known.reason.startswith((DEPTH, NOFOLLOW))
    stays_out = known.state is State.EXCLUDED and known.reason.startswith(_LIFTED_BY_BETTER_OFFER) and not is_admitted
    return Offer("", depth, known.reason if stays_out else None, known.hops)
