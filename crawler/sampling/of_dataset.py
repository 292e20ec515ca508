"""A sample of a dataset: uniform, over all URLs of its frame.

A URL is drawn by a hash of its address and the seed of the sample. So the sample follows from the frame and the
settings alone: nothing is stored, and each reader draws the same one.
"""

from __future__ import annotations

from typing import Any, cast

from crawler.dataset.records import begins_at
from crawler.dataset.views import Views
from crawler.errors import Setting, UsageError
from crawler.formatting import many
from crawler.frontier.sample_design import Method, Per
from crawler.sampling import design_of_settings, load
from crawler.settings.settings import Settings
from crawler.store.location import shown


def require_uniform(settings: Settings) -> None:
    """Raise :class:`UsageError` for a design that needs more than the frame of the whole crawl."""
    sample = settings.sample
    if sample.size is None:
        return
    if sample.method is not Method.UNIFORM:
        raise UsageError("a random walk or a list of strata needs the whole crawl in one store", key="sample.method")
    if sample.per is not Per.CRAWL:
        raise UsageError("a dataset is sampled as a whole; draw from sites out of a store", key="sample.per")
    if sample.share < 1:
        raise UsageError("a share of a frame is drawn while one store crawls; give a size alone", key="sample.share")


async def draw_if_sampled(views: Views) -> None:
    """Draw the sample of the settings, if they have one. Raises as :func:`draw_sample`."""
    if views.dataset.settings.sample.size is not None:
        await draw_sample(views)


async def draw_sample(views: Views) -> None:
    """Draw the sample of the settings. Raises :class:`UsageError` without one, and before the crawl is over."""
    dataset, name = views.dataset, shown(views.dataset.objects.location)
    settings = dataset.settings
    if settings.sample.size is None:
        raise UsageError(f"{name} was begun without ", Setting("sample.size"), ": its settings are fixed")
    if not views.manifests or begins_at(views.manifests[-1].buckets) is not None:
        buckets = views.manifests[-1].buckets.values() if views.manifests else ()
        left = sum(state.ready_at is not None or bool(state.offers) for state in buckets)
        raise UsageError(f"{name}: the frame is not complete, {many(left, 'bucket')} have work left; go on crawling")
    design = design_of_settings(settings, dataset.head.seeds, {})
    limit, now = settings.limits.max_pages_per_site, views.manifests[-1].ended_at
    await load("draw").draw(cast(Any, views), settings.sample, None, limit, now, design)
