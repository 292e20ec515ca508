"""Where the seeds of a sample went: how many were sampled as planned, and how much the others may hide."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crawler.formatting import counted, many
from crawler.inspect.seeds import Outcome
from crawler.url import host_of, split

AS_PLANNED = "as planned"
TAKEN_ALONG = "at the host that it redirects to"
#: The outcomes after which the site of a seed is sampled.
_SAMPLED = (Outcome.FETCHED, Outcome.NOT_KEPT, Outcome.NOT_DRAWN)


class SeedGroup(NamedTuple):
    """The seeds with one outcome: sampled as planned or at another host, or a code of the view ``seeds``.

    ``frame`` is the number of URLs of their sites in the sampling frame, ``None`` if the frame is a list of seeds.
    ``frame_at_most`` is that number if each of their sites were as large as the largest site in the frame; for sites
    that are sampled it is ``frame``.
    """

    became: str
    seeds: int
    sites: int
    frame: int | None
    frame_at_most: int | None

    @property
    def is_sampled(self) -> bool:
        return self.became in (AS_PLANNED, TAKEN_ALONG)

    @property
    def label(self) -> str:
        label = f"sampled {self.became}" if self.is_sampled else self.became.replace("_", " ")
        return f"{label} with {many(self.frame, 'URL')} in the frame" if self.frame else label


def groups_of(
    seeds: Sequence[Mapping[str, str | None]], framed: Mapping[str, int], *, is_list: bool
) -> list[SeedGroup]:
    """The groups of ``seeds``, rows of the view ``seeds``. ``framed`` has the URLs of each site in the frame."""
    sites: defaultdict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    largest = max(framed.values(), default=0)
    for seed in sorted(seeds, key=lambda seed: seed["leads_to"] is not None):  # a site counts once
        url, end = str(seed["url"]), seed["leads_to"] or str(seed["url"])
        became = str(seed["outcome"])
        if became in _SAMPLED:
            became = AS_PLANNED if host_of(end) == host_of(url) else TAKEN_ALONG
        counts[became] += 1
        new = {split(end).site, split(url).site} - seen
        sites[became] |= new
        seen |= new
    groups = []
    for became, number in counts.items():
        frame = None if is_list else sum(framed.get(site, 0) for site in sites[became])
        group = SeedGroup(became, number, len(sites[became]), frame, frame)
        if frame is not None and not group.is_sampled:
            group = group._replace(frame_at_most=max(frame, largest * number))
        groups.append(group)
    return sorted(groups, key=lambda group: (not group.is_sampled, group.became))


def describe_seed_groups(groups: Sequence[SeedGroup]) -> list[str]:
    """Where the seeds went, and what share of the URLs the frame may lack, in sentences."""
    if not groups:
        return []
    said = counted((group.label, group.seeds) for group in groups)
    lines = [f"Seeds: {sum(group.seeds for group in groups):,} ({said})"]
    frame, most = (sum(getattr(group, name) or 0 for group in groups) for name in ("frame", "frame_at_most"))
    lost = sum(group.seeds for group in groups if not group.is_sampled)
    if lost and most > frame:
        lines.append(
            f"Not sampled: the sites of {many(lost, 'seed')}. At most {100 * (most - frame) / most:.1f} % of the URLs "
            "are missing, if none of these sites is larger than the largest one in the frame"
        )
    return lines
