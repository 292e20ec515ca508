"""Facts for an ethics board: the design, how often sites were contacted, what is kept, what became of objections."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.audit.log_reader import read_rows
from crawler.formatting import many
from crawler.store.rows import SampleDraw

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SHOWN = 10
_FORGOTTEN_SHOWN = 1_000


class Contacts(NamedTuple):
    """The number of requests that were sent to a contacted site: smallest, median, 90th percentile and largest."""

    sites: int
    least: int
    median: int
    ninetieth: int
    most: int


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """The facts. ``draws`` are all draws of a sample in their order; at most the last of them is not discarded.

    What is of any type has the rows of a statement in ``queries.sql``: sites by how often they were contacted, what is
    kept of pages, and for what sites URLs were forgotten or blocked. ``kept.noindex_bodies`` must be 0.
    """

    seeds: int
    draws: Sequence[SampleDraw]
    contacts: Contacts
    most_contacted: Sequence[Any]
    kept: Any
    forgotten: Sequence[Any]
    blocked: Sequence[Any]

    @property
    def draw(self) -> SampleDraw | None:
        """The draw whose sample the store has."""
        return next((draw for draw in self.draws if draw.discarded_at is None), None)

    def is_registered(self, digest: str) -> bool:
        """Whether the sample in the store was drawn by the design with this digest."""
        return self.draw is not None and self.draw.is_registered_as(digest)

    def describe_registration(self, digest: str) -> str:
        """Whether the sample in the store was drawn by the design with this digest, in a sentence."""
        if self.draw is None:
            return "The store holds no sample, so none was drawn by the registered design"
        if not self.draw.is_registered_as(digest):
            return f"The sample was not drawn by the registered design: its design is {self.draw.design_sha256}"
        earlier = f"; {many(len(self.draws) - 1, 'earlier draw')} discarded" if len(self.draws) > 1 else ""
        seeds = "" if digest == self.draw.design_sha256 else ", which does not name the seeds"
        return f"The sample was drawn by the registered design{seeds} (draw {self.draw.number}{earlier})"

    def as_json(self) -> dict[str, Any]:
        """One JSON object; times in seconds since the epoch."""
        return {
            "seeds": self.seeds,
            "draws": [
                draw._asdict() | {"design": json.loads(draw.design), "is_discarded": draw.discarded_at is not None}
                for draw in self.draws
            ],
            "requests_per_site": self.contacts._asdict(),
            "most_contacted": [site._asdict() for site in self.most_contacted],
            "kept": self.kept._asdict(),
            "forgotten": [each._asdict() for each in self.forgotten],
            "blocked_sites": [each._asdict() for each in self.blocked],
        }


async def read_study_facts(store: Store) -> StudyFacts:
    """Read the facts. The statements aggregate over the whole store, and return few rows."""
    (kept,) = await read_rows(store, "kept")
    return StudyFacts(
        len(await store.seeds()),
        await store.samples.draws(),
        _contacts([(row.requests, row.sites) for row in await read_rows(store, "contacts")]),
        await read_rows(store, "most_contacted", limit=_SHOWN),
        kept,
        await read_rows(store, "forgotten", limit=_FORGOTTEN_SHOWN),
        await read_rows(store, "blocked_sites", limit=_FORGOTTEN_SHOWN),
    )


def _contacts(counts: Sequence[tuple[int, int]]) -> Contacts:
    """``counts`` are the numbers of requests in ascending order, each with how many sites had that number."""
    sites = sum(many for _, many in counts)

    def at(share: float) -> int:
        """The smallest number of requests that at least this share of the sites does not exceed."""
        seen = 0
        for requests, with_that in counts:
            seen += with_that
            if seen >= share * sites:
                return requests
        return 0

    return Contacts(sites, at(0), at(0.5), at(0.9), at(1))
