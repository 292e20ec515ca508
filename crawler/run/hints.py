"""Gives a crawl hints that URLs have changed, from any source that knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec

from crawler.cli.output import tell
from crawler.clock import SystemClock
from crawler.formatting import many
from crawler.frontier.hints import Hint, HintCounts, HintKind
from crawler.inspect.why import scope_of
from crawler.reasons import Reason
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.store.location import db_argument

if TYPE_CHECKING:
    from crawler.store.sections import Store

_AT_ONCE = 5000
_SHOWN = 3  # refused URLs


class HintsGiven(msgspec.Struct, frozen=True):
    """What hints came to; ``refused`` are new URLs that the scope refuses, each with the reason."""

    counts: HintCounts
    refused: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """The counts and the refused URLs as one JSON object."""
        return self.counts._asdict() | {"refused": dict(self.refused)}


async def give_hints(store: Store, urls: Iterable[str], kind: HintKind, source: str) -> HintsGiven:
    """Give the store hints about ``urls``, under the scope and the settings of the last run."""
    refused: dict[str, str] = {}

    def refusal(url: str, depth: int) -> Reason | None:
        found = scope.refusal(url, depth)
        if found is not None:
            refused[url] = found.code.message(found.sentence, terminal_name)
        return found

    now, settings = SystemClock().now(), (await stored_settings(store) or Settings())
    scope, revisit, total = await scope_of(store, settings, now), settings.revisit, HintCounts()
    hints = [Hint(url, kind, now, source) for url in urls]
    for start in range(0, len(hints), _AT_ONCE):
        counts = await store.revisits.apply_hints(hints[start : start + _AT_ONCE], revisit, now, refusal)
        total = total.plus(counts)
    return HintsGiven(total, refused)


def render(given: HintsGiven, db: str) -> None:
    """Print what hints came to for people; ``db`` is the store."""
    from crawler.cli.console import console

    counts, refused = given.counts, given.refused
    due = f"; `crawler run --revisit{db_argument(db)}` makes them" if counts.moved or counts.new else ""
    console.print(
        f"{many(counts.moved, 'visit')} brought forward, {many(counts.new, 'URL')} new, "
        f"{counts.ignored:,} ignored{due}",
        soft_wrap=True,
    )
    for url, reason in list(refused.items())[:_SHOWN]:
        tell(f"{url} is ignored: {reason}; `crawler control queue {quote(url)}{db_argument(db)}` makes it a seed")
    if len(refused) > _SHOWN:
        tell(f"{len(refused) - _SHOWN:,} more URLs are ignored: --json names them")
