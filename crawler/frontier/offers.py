"""The decision on a URL that was found: add it, ignore it, or admit a known URL that was excluded before."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from crawler.model import Kind, State
from crawler.reasons import Reason, ReasonCode

#: Exclusions that depend on how the URL was found. A better offer lifts them: a link that may and shall be followed, a
#: shorter path, a path outside a redirect chain that was too long, a scope that admits the URL now (a main site was
#: adopted, or a seed redirects to it), a link from a URL that was drawn, or a site that is no longer blocked. An
#: address of a domain is lifted if its turn comes again, or if another address redirects to it: both name it as a seed.
LIFTED_BY_BETTER_OFFER = frozenset(
    {
        ReasonCode.NOFOLLOW,
        ReasonCode.NOT_FOLLOWED,
        ReasonCode.DEPTH,
        ReasonCode.REDIRECTS,
        ReasonCode.SCOPE,
        ReasonCode.PATTERN,
        ReasonCode.CONTACT,
        ReasonCode.TRAP,
        ReasonCode.SAMPLE,
        ReasonCode.BLOCKED,
        ReasonCode.OTHER_ADDRESS,
    }
)
_LIFTED_BY_SITEMAP = LIFTED_BY_BETTER_OFFER | {ReasonCode.TYPE}


class Offer(msgspec.Struct, frozen=True, gc=False):
    """A URL as it was found. ``refusal`` is the reason to exclude it; ``None`` queues it."""

    url: str
    depth: int
    refusal: Reason | None = None
    hops: int = 0  # redirects in a row that led to the URL
    seed: bool = False
    kind: Kind = Kind.PAGE
    lastmod: float | None = None  # from a sitemap, in seconds since the epoch
    by_domain: bool = False  # other addresses of its domain are tried if it gives no answer

    @property
    def is_good(self) -> bool:
        """Whether no rule refuses the URL. A block by the operator is no rule: it delays the URL."""
        return self.refusal is None or self.refusal.code is ReasonCode.BLOCKED


class KnownUrl(NamedTuple):
    """An offered URL that is already in the store."""

    state: State
    reason: Reason
    depth: int
    hops: int


class UrlChange(NamedTuple):
    """The change that an offer makes to a known URL: its depth, and whether it is queued."""

    depth: int
    hops: int
    requeue: bool
    reason: Reason
    seed: bool = False  # the URL counts as a seed from now on
    by_domain: bool = False  # of the offer; it counts if that queues the URL


def weigh(known: KnownUrl, offer: Offer) -> UrlChange | None:
    """The change that ``offer`` makes to a known URL, or ``None``.

    The depth of a URL is the length of the shortest known path from a seed. So the effect of ``--max-depth`` depends
    neither on the order in which pages arrive nor on restarts.
    """
    lifted = _LIFTED_BY_SITEMAP if offer.kind is Kind.SITEMAP else LIFTED_BY_BETTER_OFFER
    code = known.reason.code
    is_lifted = code in lifted and (offer.seed or code is not ReasonCode.OTHER_ADDRESS)
    liftable = known.state is State.EXCLUDED and is_lifted
    closer = offer.depth < known.depth and offer.is_good
    if liftable and offer.is_good and (offer.refusal is None or code is not ReasonCode.BLOCKED):
        # A path that the scope refused still gives a depth; a nofollow link is no path.
        depth = (
            min(known.depth, offer.depth)
            if code in (ReasonCode.SCOPE, ReasonCode.PATTERN, ReasonCode.CONTACT)
            else offer.depth
        )
        reason = offer.refusal or Reason(ReasonCode.REQUEUED)
        return UrlChange(depth, offer.hops, offer.refusal is None, reason, offer.seed, offer.by_domain)
    if closer:
        is_elsewhere = code is ReasonCode.OTHER_BUCKET  # the other bucket has to know: the store offers it again
        return UrlChange(
            offer.depth, min(known.hops, offer.hops), is_elsewhere, known.reason, offer.seed, offer.by_domain
        )
    return None


def passed_on(known: KnownUrl, depth: int, max_depth: int | None) -> Offer:
    """The offer for a ``known`` URL to which a page links or redirects, if the page's own depth has decreased.

    ``depth`` is the new depth of the known URL. These links may be followed, so they also admit a URL that was known
    from a nofollow link only. An exclusion for any other reason depends on the URL alone, and stays.
    """
    code = known.reason.code
    is_admitted = (max_depth is None or depth <= max_depth) and code in (ReasonCode.DEPTH, ReasonCode.NOFOLLOW)
    stays_out = known.state is State.EXCLUDED and code in LIFTED_BY_BETTER_OFFER and not is_admitted
    return Offer("", depth, known.reason if stays_out else None, known.hops)
