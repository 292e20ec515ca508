"""Applies changed settings: URLs that the old settings decided on are decided on again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crawler.engine.operator import blocked_sites
from crawler.engine.readmission import WIDENED, readmit
from crawler.errors import Setting, UsageError
from crawler.fields.declaration import Of
from crawler.formatting import many
from crawler.frontier.sample_design import Method
from crawler.frontier.scope import Scope
from crawler.reasons import FRAME_CODES, ReasonCode
from crawler.settings.crawl_scope import adopt_known
from crawler.settings.keys import DECIDED_BY, KEYS
from crawler.settings.seeds import BadSeed
from crawler.store.location import db_argument
from crawler.store.rows import SkippedSeed

if TYPE_CHECKING:
    from crawler.store.sections import Store

_BATCH = 5000

#: The reasons of URLs that the scope refuses before they are requested.
_OUT_OF_SCOPE = (ReasonCode.SCOPE, ReasonCode.PATTERN, ReasonCode.DEPTH, ReasonCode.CONTACT, ReasonCode.TRAP)
#: The reasons of URLs whose sites could not be asked. If a setting behind them changes, these sites are asked again.
_UNREACHED = (ReasonCode.ADDRESS, ReasonCode.CERTIFICATE, ReasonCode.NO_NAME)


async def begin(
    store: Store,
    scope: Scope,
    settings: Mapping[str, Any],
    seeds: Collection[str],
    now: float,
    *,
    pages_per_site: int | None,
    domains: Collection[str] = frozenset(),
    at_work: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Begin a run with the new ``seeds``, and apply seeds and settings that have changed to the URLs in the store.

    The seeds in ``domains`` stand for a domain (:mod:`crawler.frontier.domain_addresses`).

    ``tell`` gets a sentence on the effect on known URLs. The settings are stored last: after a crash before that,
    the next run applies them all again.
    """
    await adopt_known(store, scope)
    scope.blocks.replace(await blocked_sites(store))
    before = await store.last_settings()
    if seeds or before != plain(settings):
        await store.begin_change(now)
        await store.recover(now)  # start_run does so, too, but pauses must be right before groups change
        if before is not None:
            left_out, again = await rescope(store, scope, before, settings, now, new_seeds=bool(seeds))
            if left_out:
                tell(f"the new options leave out {many(left_out, 'queued URL')}; the last options bring them back")
            if again:
                tell(f"queued again under the new options or seeds: {many(again, 'URL')}")
        await store.add_seeds([(url, scope.refusal(url, 0, is_seed=True)) for url in seeds], domains)
        await store.prepare(pages_per_site)
    await store.start_run(dict(settings), now, at_work=at_work)


async def note_skipped(store: Store, skipped: Mapping[str, Sequence[BadSeed]]) -> None:
    """Store the lines of each list of seeds that were no URLs, for the ledger of the seeds."""
    for source, bad in skipped.items():
        lines = [SkippedSeed(each.line, each.text, each.reason, " ".join(each.meant)) for each in bad]
        await store.note_skipped(source, lines)


def wait_for_others(store: str) -> str:
    """The remedy if other workers are in the way on ``store``."""
    argument = db_argument(store)
    return (
        f"wait until they are done (`crawler status{argument}` shows them), or stop them first "
        f"(`crawler control stop{argument}`)"
    )


def require_same_crawl(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], new_seeds: Collection[str], store: str
) -> None:
    """Raise :class:`UsageError` if the workers on a store crawl with other settings or seeds than this process.

    The scopes would differ.
    """
    differing = sorted(
        key.name for key in KEYS.values() if key.of is Of.CRAWL and _at(theirs, key.path) != _at(plain(ours), key.path)
    )
    remedy = wait_for_others(store)
    if differing:
        parts = [part for name in differing for part in (", ", Setting(name))]
        raise UsageError(f"{store}: others crawl into it under other settings (", *parts[1:], f"); {remedy}")
    if new_seeds:
        raise UsageError(f"{store}: others crawl into it without {min(new_seeds)} among their seeds; {remedy}")


async def rescope(
    store: Store,
    scope: Scope,
    before: Mapping[str, Any],
    settings: Mapping[str, Any],
    now: float,
    *,
    new_seeds: bool,
) -> tuple[int, int]:
    """Queue URLs that only a changed setting had excluded, and exclude queued URLs out of a narrower scope.

    These are excluded now, and not when they are claimed: until then their sites would be asked for robots.txt.
    Returns how many URLs are excluded, and how many are queued again.
    """

    def changed(*keys: str) -> bool:
        return any(plain(_at(before, key)) != plain(_at(settings, key)) for key in keys)

    if changed("robots.reading", "identity.agent"):
        await store.expire_robots(now)
    elif changed(*_deciding(_UNREACHED)):
        await store.expire_robots(now, unreached=True)
    if changed("politeness.group"):
        await store.regroup()
    left_out = 0
    if changed(*_deciding(_OUT_OF_SCOPE)):
        left_out = await _leave_out(store, scope)
    codes = {code for code, keys in DECIDED_BY.items() if changed(*keys)}
    # A stratified sample is drawn from a list, so no other setting changes its frame.
    if _at(settings, "sample.method") == Method.STRATIFIED and not changed("sample"):
        codes.difference_update(FRAME_CODES)
    frame_changed = not codes.isdisjoint(FRAME_CODES)
    if new_seeds:
        codes |= WIDENED
    if new_seeds or frame_changed:
        await store.samples.reopen()
    return left_out, await readmit(store, scope, codes)


def _deciding(codes: Iterable[ReasonCode]) -> Iterator[str]:
    """The fields that decide one of ``codes``."""
    return (key for code in codes for key in DECIDED_BY[code])


async def _leave_out(store: Store, scope: Scope) -> int:
    """Exclude queued URLs that are out of scope. Returns how many, without those on sites that the operator blocked."""
    count, after = 0, -1
    while rows := await store.queued(after, _BATCH):
        after = rows[-1][0]
        refusals = [(number, scope.refusal(url, depth, is_seed=itself)) for number, url, depth, itself in rows]
        await store.exclude([(number, refusal) for number, refusal in refusals if refusal is not None])
        count += sum(refusal is not None and refusal.code is not ReasonCode.BLOCKED for _, refusal in refusals)
    return count


def _at(settings: Mapping[str, Any], key: str) -> Any:
    """The value of a dotted key; ``None`` if the settings do not have it."""
    value: Any = settings
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def plain(value: Any) -> Any:
    """``value`` with lists in place of tuples at every depth, as JSON has them."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
