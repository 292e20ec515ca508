"""The design of a sample as a TOML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from crawler.formatting import many
from crawler.frontier.sample_design import Amount, Design, Method, Per, SitesBy, allocate
from crawler.sampling.registration import design_of_settings, is_of_design
from crawler.settings.keys import KEYS
from crawler.settings.reference import commented_toml
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings

_USE = """\
The design of a sample. `crawler run --config FILE` draws by it, and `crawler sample plan --config FILE` tells its \
cost and its precision beforehand. docs/samples.md describes it."""

_UNNAMED = "this file does not name them, so give `crawler run` a list of them with --seeds, or name it as file below"


def design_of(settings: Settings, seeds: Seeds, known: Sequence[str]) -> str:
    """A TOML file of the settings of a design, with the design in sentences and its digest above.

    ``known`` are the seeds in the store that the design was taken from.
    """
    kept = [
        (key, value)
        for key in KEYS.values()
        if ((value := key.value(settings)) != "" and is_of_design(key)) or (key.is_remembered and value != key.default)
    ]
    registered = design_of_settings(settings, seeds.urls or known, seeds.strata)
    comments = (*_comments(settings, seeds, len(known)), *_registration(registered))
    return commented_toml("\n".join((_USE, "", *comments)), kept)


def _registration(design: Design) -> Iterable[str]:
    yield f"Digest: {design.sha256}"
    of = "the settings and the seeds" if design.seeds is not None else "the settings alone, because no seeds are named"
    yield (
        f"The digest is of {of}. Register it before the crawl; `crawler audit --registered DIGEST` then says whether "
        "the sample was drawn by this design."
    )


def _comments(settings: Settings, seeds: Seeds, known: int) -> Iterable[str]:
    sample = settings.sample
    yield f"Frame: {_frame(settings, seeds, known)}"
    if seeds.strata:
        there = Counter(seeds.strata.values())
        drawn = allocate(sample.size or 0, there)
        listed = ", ".join(f"{name} ({drawn[name]:,} of {there[name]:,})" for name in sorted(there))
        yield f"Strata: those of the list of seeds: {listed}."
    yield f"Draw: {drawn_in_words(sample)}"
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


def drawn_in_words(sample: Amount) -> str:
    """What a design draws, in sentences of which the first may follow "We drew"."""
    size, at_random, each = sample.size or 0, "at random without replacement", sample.per == Per.SITE
    site = "of these sites" if sample.sites is not None else "site (scheme, host, port)"
    of = f" of each {site}, or all that it has" if each else " of the frame"
    match Method(sample.method):
        case Method.STRATIFIED:
            return f"{many(size, 'seed')} of the list, equally many of each stratum or all that it has, {at_random}."
        case Method.RANDOM_WALK:
            return (
                f"{size:,} URLs{' of each site' * each} by random walks along the links between URLs of the frame, in "
                "both directions. The probability of a visit is in proportion to the number of links of the URL, and "
                "the estimates account for that. Walks are clusters, and draws are with replacement."
            )
    share = f", but no more than {100 * sample.share:g} % of {'its' if each else 'all'} URLs" * (sample.share < 1)
    urls = f"{many(size, 'URL')}{of}{share}, with equal probabilities, {at_random}."
    if sample.sites is None:
        return f"{urls} Each site is a stratum." if each else urls
    if sample.sites_by == SitesBy.EQUAL:
        by, certain = f"with equal probabilities, {at_random}", ""
    else:
        by = (
            "with probabilities in proportion to the number of their URLs in the frame, systematically in random order "
            "(Madow 1949; Hartley, Rao 1962)"
        )
        certain = " A site that is longer than the sampling interval is certain to be drawn."
    return f"first {many(sample.sites, 'site')} of the frame, or all if there are fewer, {by}; then {urls}{certain}"
