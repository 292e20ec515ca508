"""The commands ``crawler store forget``, ``prune`` and ``compact``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from crawler.cli.console import console
from crawler.cli.output import print_json, tell
from crawler.cli.shared import db_option, json_option, run_async, store_at
from crawler.clock import SystemClock, iso
from crawler.errors import StoreInUse, UsageError
from crawler.fields.kinds import SECONDS
from crawler.formatting import many, size
from crawler.frontier.operator import Command, standing
from crawler.maintenance.forgetting import Selection, Wanted, content_of, forget, select, unknown_site, wanted
from crawler.maintenance.forgetting import redact as reduce_addresses
from crawler.maintenance.store_commands import store as group
from crawler.reasons import Reason, ReasonCode
from crawler.search.build_index import empty_index
from crawler.settings.stores import existing_store, order
from crawler.store.computed import Computed, behind_sentence
from crawler.store.location import db_argument, require_own_host, shown
from crawler.store.rows import Content

if TYPE_CHECKING:
    from crawler.store.sections import Store

_MAX_BECAUSE = 1000
_NEVER = -1e300  # before every time
_ALL = 1 << 31  # more versions than a page has


@asynccontextmanager
async def _idle_store(db: str) -> AsyncIterator[Store]:
    """The store ``db``, on which no crawl is at work, and none begins meanwhile.

    Raises :class:`StoreInUse` if one is, and what :func:`existing_store` raises.
    """
    async with existing_store(store_at(db), read_only=False) as store, store.beginning():
        if await store.run_under_way(SystemClock().now()) is not None:
            raise StoreInUse(
                f"{store.name}: a crawl is at work on this store; `crawler control stop{db_argument(db)}` stops it, "
                "then give the same command again"
            )
        yield store


@group.command("forget")
@click.argument("target", required=False, metavar="[SITE|URL]")
@click.option("--regex", metavar="R", help="Every URL in which this regular expression is found.")
@click.option("--because", metavar="TEXT", default="", help="Why, for example who asked for it. Reports show it.")
@click.option("--redact", is_flag=True, help="Also reduce the addresses in the request log to their sites.")
@click.option("--undo", is_flag=True, help="Let the next crawl fetch again what was forgotten.")
@click.option("--dry-run", is_flag=True, help="Show what would be taken out, and change nothing.")
@db_option
@json_option
def forget_command(
    target: str | None, regex: str | None, because: str, redact: bool, undo: bool, dry_run: bool, db: str, as_json: bool
) -> int:
    """Take a SITE or a URL out of the store, for good, and keep it out.

    Pages, bodies, versions, links on these pages and ranks are deleted, so no search, export or report shows them. The
    addresses stay, excluded as "forgotten", and so does the request log, which proves what was asked. A SITE
    (example.org, or https://example.org) is blocked too: this one command is what a site that opts out needs. A URL has
    a path (https://example.org/ is the front page). The search index is emptied. The command names the commands to run
    again for it, for ranks and for near-duplicates.
    """
    asked = wanted(target, regex)
    if undo and (redact or because):
        raise UsageError("--undo takes neither --redact nor --because")
    if len(because) > _MAX_BECAUSE or not because.isprintable():
        raise UsageError(f"--because takes one line of at most {_MAX_BECAUSE:,} characters")
    said = f" --because {quote(because)}" if because else ""
    flags = {"redact": redact, "undo": undo, "dry-run": dry_run}
    command = f"crawler store forget {_target(asked)}{said}{''.join(f' --{name}' for name in flags if flags[name])}"

    async def run() -> int:
        others = await _other_parts(asked, db, command)
        work = _undo(asked, db, dry_run) if undo else _forget(asked, db, because.strip(), redact, dry_run)
        result, sentence = await work
        commands = [f"`{command}{db_argument(other)}`" for other in others]
        if as_json:
            print_json(result | ({"other_parts": [shown(other) for other in others]} if others else {}))
        else:
            console.print(sentence, soft_wrap=True)
        if commands:
            tell(f"this was done in one part of the crawl; give the same order to the others: {', '.join(commands)}")
        return 0

    return run_async(run())


async def _other_parts(asked: Wanted, db: str, command: str) -> list[str]:
    """The databases of other parts of the crawl that may have URLs that are wanted.

    Raises :class:`UsageError` if only another part has them.
    """
    async with existing_store(store_at(db)) as store:
        parts = store.parts
    if asked.regex is None:
        require_own_host(parts, asked.site or asked.url, command)
        return []
    return [] if parts is None else [parts.dbs[number] for number in parts.others]


async def _forget(asked: Wanted, db: str, because: str, redact: bool, dry_run: bool) -> tuple[dict[str, Any], str]:
    clock = SystemClock()
    async with existing_store(store_at(db)) as store:
        if unknown := await unknown_site(store, asked):
            block = f"`crawler control block {quote(asked.site)}{db_argument(db)}`"
            raise UsageError(
                f"{unknown}; nothing was changed. To forget a page, give its whole URL (https://…); to keep the crawl "
                f"from a site that it does not know yet, {block}"
            )
        if dry_run:
            chosen = await select(store, asked, forgotten=False)
            found = await content_of(store, chosen)
            sentence = f"would forget {_amount(chosen, found)}; nothing was changed"
            return _result(chosen, found), "\n".join([sentence, *chosen.listed])
    if asked.site:  # holds at once, also for a crawl that is at work
        await order(store_at(db), Command.BLOCK, asked.site, clock, because)
    why = f" on {iso(clock.now())[:10]}{f': {because}' if because else ''}"
    try:
        async with _idle_store(db) as store:
            chosen = await select(store, asked, forgotten=False)
            taken = await forget(store, chosen, Reason(ReasonCode.FORGOTTEN, why))
            forgotten = await select(store, asked, forgotten=True)  # also by an earlier command that was killed
            if redact:
                await reduce_addresses(store, forgotten)
            had_index = bool(forgotten.numbers) and await empty_index(db)
            computed = await store.computed()
            # At the end: it fails if another store keeps its bodies at the same place.
            await store.maintenance.sweep_forgotten()
            await _empty_log(store, db)
    except StoreInUse as error:
        if asked.site:
            raise UsageError(
                f"{asked.site} is blocked from now on, and nothing is forgotten yet: ", *error.args
            ) from None
        raise
    sentences = [f"forgot {_amount(chosen, taken)}"]
    argument = db_argument(db)
    if asked.site:
        sentences.append(f"{asked.site} is blocked: the crawl sends nothing there")
    if asked.regex is not None:
        exclude = f"`crawler run --exclude {quote(asked.regex.pattern)}{argument}`"
        sentences.append(f"URLs that match and are found later are crawled, unless {exclude} leaves them out")
    if had_index:
        sentences.append("the search index is empty: the words of a page cannot be taken out alone")
        computed[Computed.INDEX] = True
    if behind := behind_sentence(computed, db):
        sentences.append(behind)
    sentences.append(f"files that were written before are not changed; `{_command(asked, db)} --undo` lifts this")
    details = {"blocked": asked.site or None, "index_emptied": had_index, "behind": [*filter(computed.get, computed)]}
    return _result(chosen, taken) | details, "\n".join(sentences)


async def _empty_log(store: Store, db: str) -> None:
    if not await store.maintenance.empty_log():
        tell(
            "another command reads the store, so its log still holds what was deleted: end that command, then "
            f"`crawler store compact{db_argument(db)}`"
        )


async def _undo(asked: Wanted, db: str, dry_run: bool) -> tuple[dict[str, Any], str]:
    if dry_run:
        async with existing_store(store_at(db)) as store:
            chosen = await select(store, asked, forgotten=True)
        found = many(len(chosen.numbers), "forgotten URL")
        return _result(chosen, Content()), "\n".join(
            [f"would queue {found} again; nothing was changed", *chosen.listed]
        )
    async with _idle_store(db) as store:
        chosen = await select(store, asked, forgotten=True)
        if asked.site and asked.site in standing(await store.control.orders()).blocked:
            await store.control.give(Command.UNBLOCK, asked.site, SystemClock())
        elif not chosen.numbers:
            raise UsageError(f"{asked.text}: nothing of it was forgotten, so there is nothing to undo")
        for batch in chosen.batches():
            await store.requeue(batch)
    if not chosen.numbers:
        return _result(chosen, Content()), f"the block of {asked.site} is lifted; no URL of it was forgotten"
    queued = f"{many(len(chosen.numbers), 'URL')} of {asked.text} queued again"
    return _result(chosen, Content()), f"{queued}; `crawler run{db_argument(db)}` fetches them"


def _amount(chosen: Selection, content: Content) -> str:
    return (
        f"{many(len(chosen.numbers), 'URL')}: {many(content.pages, 'page')}, "
        f"{many(content.versions, 'earlier version')}, {many(content.links, 'link')}"
    )


def _result(chosen: Selection, content: Content) -> dict[str, Any]:
    return {"urls": len(chosen.numbers), "examples": chosen.examples} | content._asdict()


def _command(asked: Wanted, db: str) -> str:
    return f"crawler store forget {_target(asked)}{db_argument(db)}"


def _target(asked: Wanted) -> str:
    return quote(asked.site or asked.url) if asked.regex is None else f"--regex {quote(asked.regex.pattern)}"


@group.command("prune")
@click.option("--older-than", metavar="TIME", help='Versions last seen longer ago, such as "90 days".')
@click.option("--keep-versions", type=click.IntRange(1), metavar="N", help="All but the N newest versions of a page.")
@db_option
@json_option
def prune_command(older_than: str | None, keep_versions: int | None, db: str, as_json: bool) -> int:
    """Delete earlier versions of pages. The newest version of each page stays, whatever its age."""
    if older_than is None and keep_versions is None:
        raise UsageError("say which versions to delete: --older-than, --keep-versions, or both")
    try:
        age_s = None if older_than is None else SECONDS.read(older_than)
    except ValueError as error:
        raise UsageError(f"--older-than {error}") from None

    async def work() -> int:
        async with _idle_store(db) as store:
            before = _NEVER if age_s is None else SystemClock().now() - age_s
            deleted = await store.maintenance.prune(before, keep_versions or _ALL)
            await _empty_log(store, db)
        if as_json:
            print_json({"versions": deleted})
        else:
            compact = f"`crawler store compact{db_argument(db)}` returns their space to the disk"
            console.print(f"deleted {many(deleted, 'earlier version')}; {compact}", soft_wrap=True)
        return 0

    return run_async(work())


@group.command("compact")
@db_option
@json_option
def compact_command(db: str, as_json: bool) -> int:
    """Return the space of what was deleted to the disk. SQLite needs room for a second copy of the store meanwhile."""

    async def work() -> int:
        async with _idle_store(db) as store:
            before, after = await store.maintenance.compact()
            await _empty_log(store, db)
        if as_json:
            print_json({"bytes_before": before, "bytes_after": after})
        else:
            console.print(f"{size(before)} before, {size(after)} now")
        return 0

    return run_async(work())
