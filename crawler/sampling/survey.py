"""What the sample in a store says of all that it was drawn of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from math import isfinite, nan
from typing import Any

from crawler.errors import UsageError
from crawler.frontier.sample_design import Method, Per
from crawler.model import State
from crawler.reasons import ErrorKind, ReasonCode
from crawler.sampling.estimators import Estimate, Sample
from crawler.sampling.page_language import language
from crawler.store.protocols import SampleDraw, Store

#: What an exclusion means for the status that is estimated.
_EXCLUDED = {
    ReasonCode.TYPE: "of another type",
    ReasonCode.MIRROR: "by a main host",
    ReasonCode.MIRROR_CYCLE: "by a main host",
}
_LISTED = 8  # statuses and languages, the most frequent

# What became of each URL drawn, or of what it redirects to: (redirects to follow). A redirect that leads where the
# crawl does not go is told as a redirect.
_DRAWN = """
WITH RECURSIVE way (first, id, n) AS (
  SELECT DISTINCT url_id, url_id, 0 FROM sample
  UNION ALL
  SELECT way.first, t.id, n + 1 FROM way JOIN url u ON u.id = way.id JOIN url t ON t.id = u.target
  WHERE n < ? AND (u.state = 'redirected' OR u.reason_code IN ('mirror', 'mirror_cycle'))
    AND (t.state <> 'excluded' OR t.reason_code IN ('robots', 'mirror', 'mirror_cycle', 'type'))),
ends AS (SELECT first, id, row_number() OVER (PARTITION BY first ORDER BY n DESC) AS back FROM way),
answers AS (
  SELECT e.first, q.status, q.error_kind, row_number() OVER (PARTITION BY e.first ORDER BY q.id DESC) AS back
  FROM ends e JOIN url u ON u.id = e.id JOIN request q ON q.site_id = u.id >> 39 AND q.path = u.path
  WHERE e.back = 1 AND u.state IN ('redirected', 'failed') AND q.purpose = 'page')
SELECT a.stratum, a.walk, a.probability, e.first AS number, u.state, u.reason_code, s.name || u.path AS url,
       s.fetched, w.status AS answer, w.error_kind, p.status, p.body_bytes, p.nofollow, p.noindex, p.charset,
       (SELECT count(*) FROM link l WHERE l.source = e.id) AS links
FROM sample a JOIN ends e ON e.first = a.url_id AND e.back = 1
JOIN url u ON u.id = e.id JOIN site s ON s.id = u.id >> 39 LEFT JOIN page p ON p.url_id = e.id
LEFT JOIN answers w ON w.first = e.first AND w.back = 1 ORDER BY a.draw"""
_MOST_REDIRECTS = 32

# Known pages of blocked sites that were not drawn. Scope and depth stand against none of them.
_LEFT_OUT = """
SELECT count(*) AS urls FROM url
WHERE state = 'excluded' AND reason_code = 'blocked' AND kind = 'page' AND id NOT IN (SELECT url_id FROM sample)"""

_BUDGET = """
SELECT json_extract(settings, '$.crawl.max_pages_per_site') AS pages FROM run
WHERE json_extract(settings, '$.auxiliary_run') IS NULL ORDER BY id DESC LIMIT 1"""


class Unit(StrEnum):
    """What the figures of an estimate are."""

    SHARE = "share"  # 0 to 1
    BYTES = "bytes"
    LINKS = "links"


@dataclass(frozen=True, slots=True)
class Figure:
    """One estimate: ``what`` is estimated, and ``among`` which URLs."""

    what: str
    among: str
    unit: Unit
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Survey:
    """What a sample says, and of how many URLs it does not.

    ``draws`` counts URLs as often as they were drawn; ``waiting`` those not yet asked for, ``over_budget`` apart, whose
    site has had its pages; ``blocked`` those that the operator has blocked since. ``left_out`` is how many known URLs
    of blocked sites are not in the frame.
    """

    draw: SampleDraw
    draws: int
    urls: int
    waiting: int
    over_budget: int
    blocked: int
    left_out: int
    figures: Sequence[Figure]

    def as_json(self) -> dict[str, Any]:
        """One JSON object. A bound that the sample cannot tell is ``None``."""
        counted = ("draws", "urls", "waiting", "over_budget", "blocked", "left_out")
        made = asdict(self.draw) | {name: getattr(self, name) for name in counted}
        return made | {"estimates": [_plain(figure) for figure in self.figures]}


def _plain(figure: Figure) -> dict[str, Any]:
    numbers = {name: value if isfinite(value) else None for name, value in asdict(figure.estimate).items()}
    return {"what": figure.what, "among": figure.among, "unit": figure.unit.value} | numbers


async def survey(store: Store) -> Survey:
    """Estimates from the sample in the store. Raises :class:`UsageError` where it holds none."""
    draw = await store.sample_draw()
    if draw is None:
        raise UsageError("the store holds no sample; `crawler run --sample N` draws one when its crawl is done")
    rows = await store.query(_DRAWN, (_MOST_REDIRECTS if draw.follows else 0,))
    languages = {row["url"]: await _language(store, row) for row in _once(rows) if row["state"] == State.FETCHED}
    queued = [row for row in _once(rows) if row["state"] == State.QUEUED]
    budget = await _budget(store)
    over_budget = sum(budget is not None and row["fetched"] >= budget for row in queued)
    blocked = sum(_is_blocked(row) for row in _once(rows))
    left_out = (await store.query(_LEFT_OUT))[0]["urls"]
    figures = tuple(_figures(_sample(draw, rows), rows, languages)) if rows else ()
    waiting = len(queued) - over_budget
    return Survey(draw, len(rows), len(_once(rows)), waiting, over_budget, blocked, left_out, figures)


async def _budget(store: Store) -> int | None:
    """How many pages of a site the last crawl was allowed."""
    for row in await store.query(_BUDGET):
        return None if row["pages"] is None else int(row["pages"])
    return None


def _once(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({row["number"]: row for row in rows}.values())


async def _language(store: Store, row: Mapping[str, Any]) -> str | None:
    """What a page says, ``"not said"``, or ``None`` where it may not be kept, and so is not known."""
    body = None if row["noindex"] else await store.body(row["url"])
    return None if body is None else language(body, row["charset"]) or "not said"


def _sample(draw: SampleDraw, rows: Sequence[Mapping[str, Any]]) -> Sample:
    strata = [row["stratum"] for row in rows] if draw.method == Method.STRATIFIED or draw.per == Per.SITE else None
    walks = [f"{row['walk']} {row['stratum']}" for row in rows] if draw.method == Method.RANDOM_WALK else None
    return Sample([row["probability"] for row in rows], strata=strata, clusters=walks)


def _figures(
    sample: Sample, rows: Sequence[Mapping[str, Any]], languages: Mapping[str, str | None]
) -> Iterable[Figure]:
    """A URL that a figure is not about has no value, nor has one that waits, or is blocked."""

    def values(of: Callable[[Mapping[str, Any]], float | None]) -> list[float]:
        found = (of(row) for row in rows)
        return [nan if value is None else float(value) for value in found]

    said = values(lambda row: None if row["state"] == State.QUEUED or _is_blocked(row) else _is_disallowed(row))
    yield Figure("disallowed by robots.txt", "URLs", Unit.SHARE, sample.share(said))
    statuses = [_status(row) for row in rows]
    for status in _frequent(sample, statuses):
        ones = [nan if each is None else each == status for each in statuses]
        yield Figure(f"answer {status}", "URLs that may be asked for", Unit.SHARE, sample.share(ones))
    sizes = values(lambda row: row["body_bytes"])
    yield Figure("size", "pages", Unit.BYTES, _from_none(sample.mean(sizes)))
    links = values(lambda row: row["links"] if row["state"] == State.FETCHED and not row["nofollow"] else None)
    yield Figure("links per page", "pages", Unit.LINKS, _from_none(sample.mean(links)))
    tongues = [languages.get(row["url"]) for row in rows]
    for tongue in _frequent(sample, tongues):
        ones = [nan if each is None else each == tongue for each in tongues]
        yield Figure(f"language {tongue}", "pages whose text may be kept", Unit.SHARE, sample.share(ones))


def _from_none(estimate: Estimate) -> Estimate:
    """Of what is never less than nothing, the interval is not either."""
    return replace(estimate, low=max(estimate.low, 0.0)) if isfinite(estimate.low) else estimate


def _frequent(sample: Sample, labels: Sequence[str | None]) -> list[str]:
    """The most frequent labels, as estimated."""
    weights: Counter[str] = Counter()
    for label, weight in zip(labels, sample.weight.tolist(), strict=True):
        if label is not None:
            weights[label] += weight
    return sorted(weights, key=lambda label: (-weights[label], label))[:_LISTED]


def _is_disallowed(row: Mapping[str, Any]) -> bool:
    return bool(row["state"] == State.EXCLUDED and row["reason_code"] == ReasonCode.ROBOTS)


def _is_blocked(row: Mapping[str, Any]) -> bool:
    return bool(row["state"] == State.EXCLUDED and row["reason_code"] == ReasonCode.BLOCKED)


def _status(row: Mapping[str, Any]) -> str | None:
    """The status that a URL answered with, or what came instead; ``None`` of one that was not asked for."""
    state = row["state"]
    if state == State.QUEUED or _is_disallowed(row) or _is_blocked(row):
        return None
    if state == State.FETCHED:
        return str(row["status"])
    if state == State.EXCLUDED:
        return _EXCLUDED.get(row["reason_code"], "none")
    is_whole = row["error_kind"] in (None, ErrorKind.HTTP)
    return str(row["answer"]) if row["answer"] is not None and is_whole else "none"
