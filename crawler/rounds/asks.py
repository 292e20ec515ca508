"""What a bucket gets from others: the URLs that they offer, and what it needs from their sites.

It needs the robots.txt that one redirects to, main sites, licences, and permissions.

Only the task of its own bucket asks a site, so its pauses hold. A site that waits for a URL of another bucket waits in
its store as for any URL of another site. Its task hands the ask over with its results. In the next round the task of
the other bucket requests the URL, if it has no answer that holds, and publishes the answer with its results. The round
after that has the answer in the store of the asker, where it holds as long as it holds there.

A sitemap speaks for the sites whose robots.txt names it. If it is of another bucket, the task that hands it over
publishes this robots.txt in the same way, and nobody needs to ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from crawler.dataset.records import Answer, Ask, Dataset, Task, part
from crawler.engine.outbox import Outbox
from crawler.errors import StoreError
from crawler.frontier.buckets import Bucket
from crawler.frontier.offers import KnownUrl, Offer, weigh
from crawler.model import Kind, State
from crawler.parquet import load_arrow
from crawler.reasons import ReasonCode, StoredReason
from crawler.robots.response import RobotsSettings, unanswered
from crawler.robots.rsl import licence_unasked
from crawler.store.location import shown
from crawler.store.rows import RobotsNews, RobotsTarget, RobotsWait, SiteNews
from crawler.url import ROBOTS_PATH, split

if TYPE_CHECKING:
    from crawler.store.sections import Store

_OFFERS_AT_ONCE = 10_000
_KNOWN = ["url", "state", "reason_code", "depth", "hops"]


def news_of(dataset: Dataset, task: Task) -> Iterator[list[Offer]]:
    """The offers that may change the store of the bucket, some thousand at a time; no list is empty.

    They are compared with the Parquet file of its URLs: to read its store takes much longer. A sitemap may bring facts
    that the file has not.
    """
    arrow, parquet = load_arrow("rounds", "a dataset")
    content = dataset.objects.get(part("urls", task.store, task.bucket)) if task.offers and task.store else None
    for key in task.offers:
        if (offered := dataset.objects.get(key)) is None:
            raise StoreError(f"{shown(dataset.objects.location)}: {key}: there is no such object")
        for rows in parquet.ParquetFile(arrow.BufferReader(offered)).iter_batches(_OFFERS_AT_ONCE):
            offers = [msgspec.convert(row, Offer, strict=False) for row in rows.to_pylist()]
            known = {} if content is None else _known(content, {offer.url for offer in offers})
            news = [
                offer
                for offer in offers
                if offer.url not in known
                or offer.kind is not Kind.PAGE
                or offer.lastmod is not None
                or weigh(known[offer.url], offer) is not None
            ]
            if news:
                yield news


def _known(content: bytes, urls: set[str]) -> dict[str, KnownUrl]:
    """What the file of the URLs of a bucket says of these URLs."""
    arrow, parquet = load_arrow("rounds", "a dataset")
    rows = parquet.read_table(arrow.BufferReader(content), columns=_KNOWN, filters=[("url", "in", urls)])
    return {
        url: KnownUrl(State(state), StoredReason(ReasonCode(code), ""), depth, hops)
        for url, state, code, depth, hops in zip(*(column.to_pylist() for column in rows.columns), strict=True)
    }


async def wait_for(asks: list[Ask], store: Store, outbox: Outbox) -> None:
    """Let the sites of other buckets wait for their URLs in the store of the bucket that requests these."""
    numbers = await store.site_numbers([ask.site for ask in asks]) if asks else {}
    for ask in asks:
        place = split(ask.url)
        outbox.add_robots_wait(RobotsWait(numbers[ask.site], ask.site, RobotsTarget(place.site, place.path), ()))


def permissions_in(news: SiteNews, bucket: Bucket) -> Iterator[tuple[str, int]]:
    """Each robots.txt that names a sitemap of another bucket, with the number of that bucket."""
    for each in news.robots:
        named = [offer.url for offer in each.sitemaps if offer.kind is Kind.SITEMAP and offer.refusal is None]
        others = {bucket.other_of(split(url).site) for url in named if bucket.other_of(each.site) is None}
        yield from ((f"{each.site}{ROBOTS_PATH}", number) for number in others if number is not None)


async def answers_to(asks: Iterable[tuple[str, int]], store: Store) -> list[Answer]:
    """The answers for other buckets, after the crawl: ``asks`` are URLs with the numbers of these buckets."""
    askers = dict[str, set[int]]()
    for url, asker in asks:
        askers.setdefault(url, set()).add(asker)
    answers = []
    for url, of in askers.items():
        place, copy, file = split(url), None, None
        site = await store.site(place.site)
        if site is not None and place.path == ROBOTS_PATH:
            copy = site.copy
            if copy is not None and copy.body is None:  # it is large
                copy = msgspec.structs.replace(copy, body=await store.robots_text(copy.sha256))
        elif site is not None:
            file = await store.site_file(site.id, place.path)
        answers.append(Answer(url, sorted(of), copy, file))
    return answers


async def receive_answers(answers: list[Answer], store: Store, settings: RobotsSettings, now: float) -> None:
    """Put the answers of other buckets into the store. One that could not be had is a failure of its site."""
    if not answers:
        return
    numbers = await store.site_numbers([split(answer.url).site for answer in answers])
    news = SiteNews(now)
    for answer in answers:
        place = split(answer.url)
        number, site = numbers[place.site], await store.site(place.site)
        assert site is not None, "it has a number"
        why = f"{answer.url} was not requested in time by the task of its bucket"
        if place.path == ROBOTS_PATH:
            copy = answer.copy or unanswered(why, settings=settings, previous=site.copy, now=now)
            news.robots.append(RobotsNews(number, place.site, copy, None, None, answered_by=answer.url))
        else:
            before = await store.site_file(number, place.path)
            file = answer.file or licence_unasked(answer.url, why, settings=settings, previous=before, now=now)
            news.files[number, place.path] = file
    await store.receive_news(news)
