"""The log records that the engine writes for the operator of a long crawl.

Each function writes one kind of record, if there is anything to report, and passes its facts as ``extra`` for the JSON
form. Records above the level ``debug`` are rare: none is written for a request, a page or a commit that goes well.
"""

from __future__ import annotations

import logging

from crawler.formatting import duration, instant
from crawler.frontier.politeness import Pace
from crawler.frontier.refusals import RefusalNews
from crawler.model import Failed, RobotsAction, RobotsCopy
from crawler.reasons import WaitCode, WaitReason

SLOW_COMMIT_S = 2.0

_FETCH = logging.getLogger("crawler.fetch")
_ROBOTS = logging.getLogger("crawler.robots")
_POLITENESS = logging.getLogger("crawler.politeness")
_LEASE = logging.getLogger("crawler.lease")
_STORE = logging.getLogger("crawler.store")
_PARSERS = logging.getLogger("crawler.parsers")


def logs_sites() -> bool:
    """Whether :func:`robots_decided` writes anything."""
    return _ROBOTS.isEnabledFor(logging.WARNING)


def robots_decided(
    site: str, before: RobotsCopy | None, copy: RobotsCopy, *, is_closed: bool = False, was_closed: bool = False
) -> None:
    """A robots.txt was fetched: log a site that is deferred, given up, closed or open again, and of a new text."""
    facts = {"site": site, "status": copy.status, "action": copy.action.value}
    match copy.action:
        case RobotsAction.DEFER:
            until = "" if copy.retry_at is None else f" until {instant(copy.retry_at)}"
            _ROBOTS.warning("%s is deferred%s: robots.txt answered %s", site, until, copy.status, extra=facts)
        case RobotsAction.UNTRUSTED:
            _ROBOTS.warning("%s is left alone: %s", site, copy.note, extra=facts)
        case RobotsAction.GIVEN_UP:
            _ROBOTS.warning("%s is given up: robots.txt answered %s", site, copy.status, extra=facts)
        case _ if is_closed and not was_closed:
            _ROBOTS.info("%s is closed: robots.txt forbids all of it (%s)", site, copy.status, extra=facts)
        case _ if was_closed and not is_closed:
            _ROBOTS.info("%s is open again: robots.txt answered %s", site, copy.status, extra=facts)
        case _ if before is not None and before.sha256 != copy.sha256:
            _ROBOTS.info("%s: robots.txt has changed", site, extra=facts)


def licence_unread(url: str, why: str) -> None:
    """A licence could not be had or read, so it refuses every use for as long."""
    _ROBOTS.warning("%s refuses every use: no licence could be read: %s", url, why, extra={"licence": url})


def refuses(site: str, news: RefusalNews) -> None:
    """A site answers by walls or refusals: it rests, or is closed."""
    refusals = news.refusals
    facts = {"site": site, "walls": refusals.walls, "refused": refusals.refused, "rests": refusals.rest_count}
    if refusals.closed:
        _POLITENESS.warning("%s is closed: it answers by walls or refusals, also after its rests", site, extra=facts)
    else:
        message = "%s rests until %s: it answers by walls or refusals"
        _POLITENESS.warning(message, site, instant(news.rests_until), extra=facts)


def request_failed(url: str, failed: Failed) -> None:
    """A request brought no document. ``url`` may be shown."""
    facts = {"url": url, "status": failed.status, "error_kind": failed.kind.value}
    _FETCH.debug("%s failed: %s", url, failed.error, extra=facts)


def paced(group: str, before: Pace, pace: Pace) -> None:
    """An answer set a new pace: log a back-off that begins or grows."""
    if pace.backoff_s > before.backoff_s:
        facts = {"group": group, "backoff_s": pace.backoff_s}
        _POLITENESS.info("%s: a pause of %s, %s", group, duration(pace.pause_s), pace.waits_for, extra=facts)


def given_back(group: str, until: float, why: WaitReason) -> None:
    """A group is given back until its hours begin."""
    if why.code is WaitCode.HOURS:
        facts = {"group": group, "until": instant(until)}
        _POLITENESS.info("%s waits until %s: %s", group, instant(until), why.sentence, extra=facts)


def loop_used(domain: str, loop_s: float, wait_s: float) -> None:
    """The octets of an answer took much of the event loop, so its domain waits."""
    facts = {"domain": domain, "loop_s": round(loop_s, 3), "wait_s": round(wait_s, 3)}
    message = "%s: an answer in many small pieces took %.3f s of the event loop; the domain waits %s"
    _FETCH.info(message, domain, loop_s, duration(wait_s), extra=facts)


def lease_lost(error: Exception) -> None:
    """The lease of this worker ran out."""
    _LEASE.warning("the lease is lost: %s", error)


def commit_took(took_s: float, requests: int) -> None:
    """A commit has ended: log one that took longer than :data:`SLOW_COMMIT_S`."""
    if took_s > SLOW_COMMIT_S:
        facts = {"seconds": round(took_s, 3), "requests": requests}
        _STORE.warning("a commit of %d requests took %s", requests, duration(took_s), extra=facts)


def disk_is_short(shortage: str | None) -> None:
    """The crawl pauses because a disk is nearly full, or goes on (``None``)."""
    if shortage is None:
        _STORE.warning("goes on: the disk has room again")
    else:
        _STORE.warning("pauses: %s", shortage, extra={"shortage": shortage})


def parser_confined(by: str) -> None:
    """The first parser process is ready: log what confines such processes."""
    _PARSERS.info("parser processes are confined by %s", by)


def parser_waits(why: str) -> None:
    """The system cannot start a parser process at the moment."""
    _PARSERS.warning("waits: the system can start no parser process (%s)", why)


def parser_ended(why: str, *, unread: bool) -> None:
    """A parser process ended before the crawl did; ``unread``: the document that it was reading is not read again."""
    _PARSERS.warning("a parser process ended: %s%s", why, "; its document is unread" if unread else "")
