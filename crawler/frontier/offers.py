"""Taking up a URL that was found: new, known already, or known and now seen in a better light."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from crawler.model import Kind, State
from crawler.reasons import Reason, ReasonCode

#: Exclusions by circumstance, which a better offer of the same URL lifts: another link to it that may be followed, a
#: shorter way to it, a way outside a redirect chain that was too long, a scope that admits it by now (a main site was
#: adopted, or a seed redirects to it), a link from a URL that was drawn, a site that is no longer blocked.
_LIFTED_BY_BETTER_OFFER = frozenset(
    {
        ReasonCode.NOFOLLOW,
        ReasonCode.DEPTH,
        ReasonCode.REDIRECTS,
        ReasonCode.SCOPE,
        ReasonCode.CONTACT,
        ReasonCode.TRAP,
        ReasonCode.SAMPLE,
        ReasonCode.BLOCKED,
    }
)
_LIFTED_BY_SITEMAP = _LIFTED_BY_BETTER_OFFER | {ReasonCode.TYPE}


class Offer(NamedTuple):
    """A URL as it was found. ``refusal`` is the reason to exclude it; ``None`` queues it."""

    url: str
    depth: int
    refusal: Reason | None = None
    hops: int = 0  # redirects in a row that led here
    seed: bool = False
    kind: Kind = Kind.PAGE
    lastmod: float | None = None  # as a sitemap says, in seconds since the epoch

    @property
    def is_good(self) -> bool:
        """Whether no rule refuses the URL. A block by the operator is no rule: it delays the URL."""
        return self.refusal is None or self.refusal.code is ReasonCode.BLOCKED


@dataclass(frozen=True, slots=True)
class Known:
    """What the store has of an offered URL."""

    state: State
    reason: Reason
    depth: int
    hops: int


@dataclass(frozen=True, slots=True)
class Change:
    """What an offer changes in a known URL: its depth, and whether it is queued after all."""

    depth: int
    hops: int
    requeue: bool
    reason: Reason
    seed: bool = False  # it counts as a seed from now on


def weigh(known: Known, offer: Offer) -> Change | None:
    """What ``offer`` changes, or ``None``.

    The depth of a URL is the length of the shortest way known, so that neither the order in which
    pages arrive nor a restart decides what ``--max-depth`` lets in.
    """
    lifted = _LIFTED_BY_SITEMAP if offer.kind is Kind.SITEMAP else _LIFTED_BY_BETTER_OFFER
    code = known.reason.code
    liftable = known.state is State.EXCLUDED and code in lifted
    closer = offer.depth < known.depth and offer.is_good
    if liftable and offer.is_good and (offer.refusal is None or code is not ReasonCode.BLOCKED):
        # A way that the scope refused was a way; one that may not be followed was none.
        depth = min(known.depth, offer.depth) if code in (ReasonCode.SCOPE, ReasonCode.CONTACT) else offer.depth
        return Change(
            depth, offer.hops, offer.refusal is None, offer.refusal or Reason(ReasonCode.REQUEUED), offer.seed
        )
    if closer:
        return Change(offer.depth, min(known.hops, offer.hops), False, known.reason, offer.seed)
    return None


def passed_on(known: Known, depth: int, max_depth: int | None) -> Offer:
    """What a page that has come nearer to the seeds offers to what it links to, or redirects to: ``depth``.

    These links may be followed, which is all that was missing to a URL known from a nofollow link. Whatever else could
    be lifted was refused for what the URL is, and still is.
    """
    code = known.reason.code
    is_admitted = (max_depth is None or depth <= max_depth) and code in (ReasonCode.DEPTH, ReasonCode.NOFOLLOW)
    stays_out = known.state is State.EXCLUDED and code in _LIFTED_BY_BETTER_OFFER and not is_admitted
    return Offer("", depth, known.reason if stays_out else None, known.hops)
