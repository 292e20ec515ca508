"""Facts for an ethics board: the design, how often sites were contacted, what is kept, what became of objections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.store.rows import SampleDraw
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.audit")
_SHOWN = 10
_FORGOTTEN_SHOWN = 1_000


class Contacts(NamedTuple):
    """The number of requests that were sent to a contacted site: smallest, median, 90th percentile and largest."""

    sites: int
    least: int
    median: int
    ninetieth: int
    most: int


class ContactedSite(NamedTuple):
    """How often a site was contacted; ``bytes`` in octets."""

    site: str
    requests: int
    bytes: int


class Kept(NamedTuple):
    """What the store keeps of pages. ``noindex_bodies`` must be 0. Times in seconds since the epoch."""

    pages: int
    bodies: int
    noindex: int
    noindex_bodies: int
    noarchive: int
    noarchive_bodies: int
    gone: int
    oldest_at: float | None
    newest_at: float | None


class Forgotten(NamedTuple):
    """URLs of a site whose content was deleted, and the reason with the operator's words."""

    site: str
    reason: str
    urls: int


class BlockedSite(NamedTuple):
    """A site with URLs that are excluded because of a block, and its pages that are kept all the same."""

    site: str
    urls: int
    pages: int


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """The facts. ``draw`` is the design of the sample, if there is one."""

    seeds: int
    draw: SampleDraw | None
    contacts: Contacts
    most_contacted: Sequence[ContactedSite]
    kept: Kept
    forgotten: Sequence[Forgotten]
    blocked: Sequence[BlockedSite]

    def as_json(self) -> dict[str, Any]:
        """One JSON object; times in seconds since the epoch."""
        return {
            "seeds": self.seeds,
            "requests_per_site": self.contacts._asdict(),
            "most_contacted": [site._asdict() for site in self.most_contacted],
            "kept": self.kept._asdict(),
            "forgotten": [each._asdict() for each in self.forgotten],
            "blocked_sites": [each._asdict() for each in self.blocked],
        }


async def read_study_facts(store: Store) -> StudyFacts:
    """Read the facts. The statements aggregate over the whole store, and return few rows."""
    (kept,) = await store.query(_SQL["kept"])
    most = await store.query(_SQL["most_contacted"], {"limit": _SHOWN})
    forgotten = await store.query(_SQL["forgotten"], {"limit": _FORGOTTEN_SHOWN})
    return StudyFacts(
        len(await store.seeds()),
        await store.samples.drawn(),
        _contacts([(row["requests"], row["sites"]) for row in await store.query(_SQL["contacts"])]),
        [ContactedSite(**row) for row in most],
        Kept(**kept),
        [Forgotten(**row) for row in forgotten],
        [BlockedSite(**row) for row in await store.query(_SQL["blocked_sites"], {"limit": _FORGOTTEN_SHOWN})],
    )


def _contacts(counts: Sequence[tuple[int, int]]) -> Contacts:
    """``counts`` are the numbers of requests in ascending order, each with how many sites had that number."""
    sites = sum(many for _, many in counts)

    def at(share: float) -> int:
        """The smallest number of requests that at least this share of the sites does not exceed."""
        seen = 0
        for requests, many in counts:
            seen += many
            if seen >= share * sites:
                return requests
        return 0

    return Contacts(sites, at(0), at(0.5), at(0.9), at(1))
