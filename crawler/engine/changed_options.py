"""Going on with changed options: what was excluded under the old ones is looked at again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from crawler import reasons
from crawler.engine.operator import blocked_sites
from crawler.errors import Setting, UsageError
from crawler.frontier.decide import adopt_mains
from crawler.frontier.operator import BLOCKED
from crawler.frontier.scope import Scope
from crawler.store.protocols import Store

_BATCH = 5000
#: What to do where others are in the way.
WAIT = "wait until they are done, or stop them first (`crawler status` shows them)"

#: What each worker of a crawl may have of its own.
_OWN = frozenset({"output", "team.workers", "crawl.concurrency", "crawl.claimed_groups", "crawl.max_time_s"})
#: Which settings decide on what a sample is drawn of.
FRAME_KEYS = ("sample", "scope", "traps", "robots", "identity", "crawl.sitemaps", "crawl.max_pages_per_site")

#: Which settings decide on which exclusions and failures, by how their reason begins.
DECIDED_BY = {
    reasons.SCOPE: ("scope", "identity.contact"),
    reasons.CONTACT: ("identity.contact", "fetch.resolve"),
    reasons.DEPTH: ("scope",),
    reasons.ROBOTS: ("robots", "identity.agent"),
    reasons.MIRROR: ("robots", "identity.agent", "scope"),
    reasons.TRAP: ("traps",),
    reasons.TYPE: ("fetch.accept_types",),
    reasons.ADDRESS: ("fetch.allow_private", "fetch.resolve", "identity.contact"),
    reasons.REDIRECTS: ("retry.max_redirects",),
    reasons.TOO_LARGE: ("crawl.max_body_bytes",),
    reasons.SAMPLE: FRAME_KEYS,
}


async def begin(
    store: Store,
    scope: Scope,
    settings: Mapping[str, Any],
    seeds: Collection[str],
    now: float,
    *,
    pages_per_site: int | None,
    at_work: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Begin a run with new ``seeds``: the store is brought in line with seeds and settings where either has changed,
    and what that means for URLs that it knew is told.

    The settings are noted last. A crash before that, and the next run looks at all of it again.
    """
    await adopt_known(store, scope)
    scope.blocks.replace(await blocked_sites(store))
    before = await store.last_settings()
    if seeds or before != plain(settings):
        await store.unsettle(now)
        await store.recover(now)  # start_run does it too, but pauses must be right before anything is regrouped
        if before is not None:
            left_out, again = await rescope(store, scope, before, settings, now, new_seeds=bool(seeds))
            if left_out:
                tell(f"{left_out:,} of the URLs queued are left out by the new options; the last run's bring them back")
            if again:
                tell(f"{again:,} of the URLs that the last run had left out are queued again")
        await store.add_seeds([(url, scope.refusal(url, 0, is_seed=True)) for url in seeds])
        await store.prepare(pages_per_site)
    await store.start_run(dict(settings), now, at_work=at_work)


async def adopt_known(store: Store, scope: Scope) -> None:
    """Take the main sites of the mirrors known into the scope."""
    adopt_mains(scope, await store.main_sites())


def require_same_crawl(
    theirs: Mapping[str, Any],
    ours: Mapping[str, Any],
    new_seeds: Collection[str],
    store: str,
    names: Mapping[str, str],
) -> None:
    """Raise :class:`UsageError` where the others that are at work on a store crawl under other settings than ours, or
    with other seeds: the scope of each would be another one. ``names``: the key of a setting, by its field."""
    differing = sorted(
        names.get(key, key)
        for section, values in plain(ours).items()
        if section not in _OWN
        for key in (f"{section}.{name}" for name in values)
        if key not in _OWN and _at(theirs, key) != _at(plain(ours), key)
    )
    if differing:
        parts = [part for key in differing for part in (", ", Setting(key) if key in names.values() else key)]
        raise UsageError(f"{store}: others crawl into it under other settings (", *parts[1:], f"); {WAIT}")
    if new_seeds:
        raise UsageError(f"{store}: others crawl into it without {min(new_seeds)} among their seeds; {WAIT}")


async def rescope(
    store: Store, scope: Scope, before: Mapping[str, Any], settings: Mapping[str, Any], now: float, *, new_seeds: bool
) -> tuple[int, int]:
    """Put back into the frontier what only a setting that has changed since kept out.

    And the other way round: a queued URL that a narrower scope leaves out ends here. It must not wait for its turn,
    which may not come for long, while its site is asked for robots.txt on its account. Returns how many URLs are left
    out, and how many are queued again.
    """

    def changed(*keys: str) -> bool:
        return any(plain(_at(before, key)) != plain(_at(settings, key)) for key in keys)

    if changed("robots.reading", "identity.agent"):
        await store.expire_robots(now)
    elif changed("fetch.allow_private", "fetch.resolve", "identity.contact"):
        await store.expire_robots(now, unreached=True)
    if changed("politeness.group"):
        await store.regroup()
    left_out = 0
    if changed("scope", "traps", "identity.contact", "fetch.resolve"):
        left_out = await _leave_out(store, scope)
    begin_with = tuple(word for word, keys in DECIDED_BY.items() if changed(*keys))
    if new_seeds:
        begin_with += (reasons.SCOPE, reasons.DEPTH, reasons.MIRROR, reasons.SAMPLE)
    if new_seeds or changed(*FRAME_KEYS):
        await store.reopen_sample()
    if not begin_with:
        return left_out, 0
    lifted, after = 0, -1
    while rows := await store.excluded(after, _BATCH):
        after = rows[-1][0]
        again, blocked = [], []
        for number, url, reason, depth, itself in rows:
            if reason.startswith(begin_with):
                refusal = scope.refusal(url, depth, is_seed=itself)
                if refusal is None:
                    again.append(number)
                elif refusal == BLOCKED:  # the last thing that stands against it
                    blocked.append((number, refusal))
        await store.requeue(again)
        await store.exclude(blocked)
        lifted += len(again)
    return left_out, lifted


async def _leave_out(store: Store, scope: Scope) -> int:
    """Exclude what is queued and out of scope by now; returns how many the operator had not blocked."""
    count, after = 0, -1
    while rows := await store.queued(after, _BATCH):
        after = rows[-1][0]
        refusals = [(number, scope.refusal(url, depth, is_seed=itself)) for number, url, depth, itself in rows]
        await store.exclude([(number, refusal) for number, refusal in refusals if refusal is not None])
        count += sum(refusal not in (None, BLOCKED) for _, refusal in refusals)
    return count


def _at(settings: Mapping[str, Any], key: str) -> Any:
    """The value of a dotted key; ``None`` where an earlier version did not have it."""
    value: Any = settings
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def plain(value: Any) -> Any:
    """Lists for tuples, all the way down, as JSON has them."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
