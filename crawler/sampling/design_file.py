"""The design of a sample as a TOML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from crawler.formatting import many
from crawler.frontier.sample_design import Design, Method, Per, SampleSettings, SitesBy, allocate
from crawler.settings.keys import Key
from crawler.settings.reference import commented_toml
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings

_USE = """\
The design of a sample. `crawler run --config FILE` draws by it, and `crawler sample plan --config FILE` tells its \
cost and its precision beforehand. docs/samples.md describes it."""

_UNNAMED = "this file does not name them, so give `crawler run` a list of them with --seeds, or name it as file below"


def design_of(
    settings: Settings, seeds: Seeds, known: int, values: Iterable[tuple[Key, Any]], registered: Design
) -> str:
    """A TOML file of ``values``, with the design in sentences above, and the digest of ``registered``.

    ``known`` is the number of seeds in the store that the design was taken from.
    """
    comments = (*_comments(settings, seeds, known), *_registration(registered))
    return commented_toml("\n".join((_USE, "", *comments)), values)


def _registration(design: Design) -> Iterable[str]:
    yield f"Digest: {design.sha256}"
    of = "the settings and the seeds" if design.seeds is not None else "the settings alone, because no seeds are named"
    yield (
        f"The digest is of {of}. Register it before the crawl; `crawler audit --registered DIGEST` then says whether "
        "the sample was drawn by this design."
    )


def _comments(settings: Settings, seeds: Seeds, known: int) -> Iterable[str]:
    sample = settings.sample
    assert sample.size is not None
    yield f"Frame: {_frame(settings, seeds, known)}"
    if sample.method is Method.STRATIFIED:
        yield f"Strata: {_strata(settings, seeds)}"
    else:
        yield from _sites(sample)
    yield f"Draw: {_draw(sample)}"
    yield f"Keys: BLAKE2b of the URL under the seed {sample.seed}: the same frame gives the same sample."


def _frame(settings: Settings, seeds: Seeds, known: int) -> str:
    named = f"{many(len(seeds.urls), 'seed')} of {settings.seeds.file}" if seeds.urls else ""
    listed = named or (f"the {many(known, 'seed')} of the store; {_UNNAMED}" if known else "")
    listed = listed or "the seeds, which this file does not name yet"
    depth = settings.limits.max_depth
    if settings.sample.method is Method.STRATIFIED or depth == 0:
        return f"{listed}."
    reached = "all that links lead to" if depth is None else f"what is within {many(depth, 'link')} of them"
    sitemaps = " and in their sitemaps" if settings.discovery.sitemaps else ""
    return f"{listed}, and {reached}{sitemaps}, {settings.scope.mode.words}."


def _strata(settings: Settings, seeds: Seeds) -> str:
    if not seeds.strata:
        return "those of the list of seeds."
    there = Counter(seeds.strata.values())
    drawn = allocate(settings.sample.size or 0, there)
    listed = ", ".join(f"{name or '(empty)'} ({drawn[name]:,} of {there[name]:,})" for name in sorted(there))
    return f"those of the list of seeds: {listed}."


def _sites(sample: SampleSettings) -> Iterable[str]:
    if sample.sites is None:
        yield "Strata: the sites (scheme, host, port), all of them." if sample.per is Per.SITE else "Strata: none."
        return
    first = f"First stage: {many(sample.sites, 'site')} (scheme, host, port) of the frame, or all if there are fewer,"
    if sample.sites_by is SitesBy.EQUAL:
        yield f"{first} with equal probabilities: those with the smallest keys."
    else:
        yield (
            f"{first} with probabilities in proportion to the number of their URLs in the frame: systematically in the "
            "order of their keys."
        )


def _draw(sample: SampleSettings) -> str:
    method, size, each = sample.method, sample.size or 0, sample.per is Per.SITE
    of = "" if not each else " of each site" if sample.sites is None else " of each site of the first stage"
    match method:
        case Method.UNIFORM:
            most = f", but no more than {100 * sample.share:g} % of {'its' if each else 'all'} URLs"
            bound = most if sample.share < 1 else ""
            return f"the {many(size, 'URL')}{of} with the smallest keys{bound}, at random without replacement."
        case Method.RANDOM_WALK:
            return f"{size:,} steps of random walks along the links{' ' * each}{'in each site' * each}."
        case Method.STRATIFIED:
            return f"{many(size, 'seed')}, equally many of each stratum, those with the smallest keys."
