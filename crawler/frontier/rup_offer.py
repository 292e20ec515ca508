"""Finding out, during a crawl, whether a site offers updates: one request for its ``/rupinfo.txt``. Pure."""

from __future__ import annotations

from crawler.frontier.decide import Outcome, Queued, after_fetch
from crawler.frontier.offers import Offer
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.scope import Scope
from crawler.model import Failed, Fetched, FetchResult, Kind, Redirected, State
from crawler.reasons import Reason, ReasonCode
from crawler.rup.protocol.info import MAX_BYTES as RUPINFO_BYTES
from crawler.rup.protocol.info import PATHS, FoundInfo, NoInfo, read_info
from crawler.url import split

__all__ = ["RUPINFO_BYTES", "after_rupinfo", "rupinfo_of"]


def rupinfo_of(site: str, scope: Scope, path: str = PATHS[0]) -> Offer:
    """The offer that queues the ``/rupinfo.txt`` of a site."""
    url = f"{site}{path}"
    return Offer(url, 0, scope.refusal(url, 0, is_seed=True), kind=Kind.RUP)


def after_rupinfo(queued: Queued, result: FetchResult, scope: Scope, settings: RequestSettings) -> Outcome:
    """The outcome of the visit of a ``/rupinfo.txt``. If there is none, ``/rupinfo.tex`` is offered instead."""
    site, path = split(queued.url)
    match result:
        case Fetched():
            info = read_info(result.body, queued.url)
            if isinstance(info, NoInfo):
                return _none(queued, f"no rupinfo, {info.why}")
            reason = Reason(ReasonCode.RUPINFO, f"{result.status}, rupinfo: {info.cgi}")
            offered = FoundInfo(queued.url, result.finished_at, info)
            return Outcome(queued, State.FETCHED, reason, rupinfo=offered)
        case Redirected():
            return _none(queued, f"{result.status} to another URL, which is not followed")
        case Failed() if result.status in (404, 410):
            other = (rupinfo_of(site, scope, PATHS[1]),) if path == PATHS[0] else ()
            return _none(queued, f"there is none ({result.status})", *other)
        case _:
            return after_fetch(queued, result, None, scope, settings)


def _none(queued: Queued, why: str, *offers: Offer) -> Outcome:
    return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.NO_RUPINFO, why), offers=offers)
