"""Whether a sample can be drawn as its settings ask, and the draw from a list of seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crawler.errors import Setting, UsageError, require
from crawler.frontier.sample_design import Drawn, Listed, Method, Per, SitesBy, draw_stratified
from crawler.settings.settings import Settings


def require_drawable(settings: Settings, seeds: Sequence[str], strata: Mapping[str, str]) -> None:
    """Raise :class:`UsageError` for a sample that cannot be drawn as asked."""
    sample, limits = settings.sample, settings.limits
    require("sample", "a sample", "crawler.sampling.survey")  # before anything is asked for
    is_uniform, is_of_list = sample.method is Method.UNIFORM, sample.method is Method.STRATIFIED
    per_site, budget, size = sample.per is Per.SITE, limits.max_pages_per_site, sample.size or 0
    if limits.max_pages is not None:
        raise UsageError(
            Setting("sample.size"),
            " with ",
            Setting("limits.max_pages"),
            ": the known URLs of such a crawl depend on the order in which pages arrive; bound the crawl by ",
            Setting("limits.max_depth"),
            ", which leaves the deepest pages to the sample",
        )
    if per_site and is_uniform and budget is not None and budget < size:
        raise UsageError(
            f"{size:,} URLs of each site are to be drawn, and only {budget:,} may be fetched: raise ",
            Setting("limits.max_pages_per_site"),
            " or lower ",
            Setting("sample.size"),
        )
    if sample.sites is not None and not per_site:
        raise UsageError(
            Setting("sample.sites"), " draws sites and then URLs of each of them: give ", Setting("sample.per", "site")
        )
    if sample.sites is None and sample.sites_by is not SitesBy.EQUAL:
        raise UsageError(
            Setting("sample.sites_by"), " without ", Setting("sample.sites"), ": say how many sites to draw"
        )
    if not is_uniform and (sample.sites is not None or sample.share < 1):
        key = "sample.share" if sample.sites is None else "sample.sites"
        raise UsageError(Setting(key), " is for the method ", Method.UNIFORM.value, ": leave one of them out")
    if is_of_list and per_site:
        raise UsageError("a stratified sample is drawn from the whole list: leave out ", Setting("sample.per", "site"))
    of_list(settings)
    if is_of_list and seeds and not strata:
        raise without_strata()
    unlisted = next((url for url in seeds if url not in strata), None)
    if is_of_list and unlisted is not None:
        raise UsageError(
            f"{unlisted} has no stratum, and the sample is stratified; add a stratum, or leave the URL out"
        )


def of_list(settings: Settings) -> Settings:
    """The settings of a crawl; a stratified sample requests nothing but drawn seeds.

    Raises :class:`UsageError` if they ask for more than these.
    """
    if not settings.sample.is_of_list:
        return settings
    if settings.limits.max_depth:
        raise UsageError(
            "a stratified sample requests nothing but drawn seeds: leave out ", Setting("limits.max_depth")
        )
    return replace(settings, limits=replace(settings.limits, max_depth=0))


def without_strata() -> UsageError:
    """The error for a stratified sample of seeds that name no strata."""
    return UsageError(
        "a stratified sample needs seeds with strata: a CSV file with the columns url,stratum or rank,domain, in ",
        Setting("seeds.file"),
    )


def draw_seeds(settings: Settings, strata: Mapping[str, str]) -> list[Drawn]:
    """A stratified sample of seeds.

    Raises :class:`UsageError` if the sample has fewer URLs than there are strata.
    """
    assert settings.sample.size is not None
    there = len(set(strata.values()))
    if settings.sample.size < there:
        raise UsageError(
            Setting("sample.size", settings.sample.size),
            f": the list has {there} strata, and some would have no seed in the sample; draw {there} URLs or more",
        )
    listed = (Listed(url, stratum) for url, stratum in strata.items())
    return draw_stratified(listed, settings.sample.size, settings.sample.seed)
