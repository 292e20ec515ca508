"""The commands ``crawler store …``: they take content out of a store, copy it, or let a role read it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import copy as copy_of
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from crawler.cli.on_store import on_store, show
from crawler.cli.output import say, tell
from crawler.cli.progress import progress_line
from crawler.cli.secrets import secret
from crawler.cli.shared import because_option, cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock, iso
from crawler.errors import StoreInUse, UsageError
from crawler.fields.kinds import SECONDS
from crawler.formatting import many, size
from crawler.frontier.operator import Command, standing
from crawler.maintenance.forgetting import Selection, Wanted, content_of, forget, select, unknown_site, wanted
from crawler.maintenance.forgetting import redact as reduce_addresses
from crawler.reasons import Reason, ReasonCode
from crawler.settings.stores import existing_store, open_store, order
from crawler.store.computed import REFRESH, Computed, behind_sentence
from crawler.store.location import db_argument, shown
from crawler.store.open import grant_reader_at
from crawler.store.rows import Content
from crawler.texts.reader import TextReader

if TYPE_CHECKING:
    from crawler.store.copy import Copied
    from crawler.store.sections import Store

_NEVER = -1e300  # before every time
_ALL = 1 << 31  # more versions than a page has

_READER_PASSWORD = "CRAWLER_READER_PASSWORD"


@cli.group()
def store() -> None:
    """Take content out of a store, copy it, or let a role read it."""


@store.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy the store FROM (a file, or postgresql://user@host/name) into TO, which is empty or an earlier copy of it.

    The same command continues a copy that was cut off, and brings a complete one up to date. In the end the tables of
    both are compared by checksums. The search index is not copied: `crawler refresh-search` builds it.
    """
    from crawler.store.copy import copy_store

    async def work(ours: Store) -> list[Copied]:
        theirs = await open_store(store_at(target), to_copy_into=True)
        try:
            with progress_line("beginning") as doing:
                return await copy_store(
                    ours, theirs, SystemClock().now(), lambda table, rows, what: doing(f"{table}: {rows:,} rows {what}")
                )
        finally:
            await theirs.close()

    copied = on_store(source, work)
    show(as_json, lambda: [asdict(each) for each in copied], lambda: _render_copied(copied, target))


def _render_copied(copied: Sequence[Copied], target: str) -> None:
    from crawler.cli.console import console
    from crawler.cli.layout import Align, table

    rows = ((each.table, f"{each.rows:,}", f"{each.new:,}", each.checksum) for each in copied if each.rows)
    columns: dict[str, Align] = {"table": "left", "rows": "right", "copied now": "right", "checksum of both": "left"}
    console.print(table(columns, rows))
    name = shown(target)
    say(f"{name} is a complete copy; `crawler run --db {quote(name)}` with the options of the crawl continues it")


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


@store.command("forget")
@click.argument("target", required=False, metavar="[SITE|URL]")
@click.option("--regex", metavar="R", help="Every URL in which this regular expression is found.")
@because_option
@click.option("--redact", is_flag=True, help="Also reduce the addresses in the request log to their sites.")
@click.option("--undo", is_flag=True, help="Let the next crawl fetch again what was forgotten.")
@click.option("--dry-run", is_flag=True, help="Show what would be taken out, and change nothing.")
@db_option
@json_option
def forget_command(
    target: str | None,
    regex: str | None,
    because: str | None,
    redact: bool,
    undo: bool,
    dry_run: bool,
    db: str,
    as_json: bool,
) -> None:
    """Take a SITE or a URL out of the store, for good, and keep it out.

    Pages, bodies, versions, links on these pages and ranks are deleted, so no search, export or report shows them. The
    addresses stay, excluded as "forgotten", and so does the request log, which proves what was asked. A SITE
    (example.org, or https://example.org) is blocked too: this one command is what a site that opts out needs. A URL has
    a path (https://example.org/ is the front page). The pages are taken out of the search
    index. The command names the commands to run again for the index, ranks and near-duplicates.
    """
    asked = wanted(target, regex)
    if undo and (redact or because):
        raise UsageError("--undo takes neither --redact nor --because")

    work = _undo(asked, db, dry_run) if undo else _forget(asked, db, because or "", redact, dry_run)
    result, sentence = run_async(work)
    show(as_json, lambda: result, lambda: say(sentence))


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
    from crawler.search.build_index import take_out  # not for a site that is unknown: it is large

    try:
        async with _idle_store(db) as store:
            chosen = await select(store, asked, forgotten=False)
            taken = await forget(store, chosen, Reason(ReasonCode.FORGOTTEN, why))
            forgotten = await select(store, asked, forgotten=True)  # also by an earlier command that was killed
            if redact:
                await reduce_addresses(store, forgotten)
            file, left_index = None, None
            if forgotten.numbers:
                async with TextReader() as reader:
                    file, left_index = await take_out(db, store, reader)
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
    if left_index:
        sentences.append("taken out of the search index, too")
    elif left_index is not None:
        sentences.append(
            "no search finds them any more, but the file of the index still holds their words, because a search is at "
            "work: repeat the command later"
        )
    elif file is not None and computed.get(Computed.INDEX):
        sentences.append(f"{file}: no search index here; `{REFRESH}` where it is takes them out of it")
    if behind := behind_sentence(computed, db):
        sentences.append(behind)
    sentences.append(f"files that were written before are not changed; `{_command(asked, db)} --undo` lifts this")
    details = {
        "blocked": asked.site or None,
        "in_index": left_index is not None,
        "behind": [*filter(computed.get, computed)],
    }
    return _result(chosen, taken) | details, "\n".join(sentences)


async def _empty_log(store: Store, db: str) -> None:
    if not await store.maintenance.empty_log():
        tell(
            "another command reads the store, so its log still holds what was deleted: end that command, then "
            f"`crawler store clean{db_argument(db)}`"
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


def _age_s(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else SECONDS.read(value)
    except ValueError as error:
        raise UsageError(f"--older-than {error}") from None


@store.command()
@click.option(
    "--older-than",
    callback=_age_s,
    metavar="TIME",
    help='Delete versions last seen longer ago, such as "90 days".',
)
@click.option(
    "--keep-versions", type=click.IntRange(1), metavar="N", help="Delete all but the N newest versions of a page."
)
@db_option
@json_option
def clean(older_than: float | None, keep_versions: int | None, db: str, as_json: bool) -> None:
    """Delete what no page needs, and return the space of what was deleted to the disk.

    Bodies outside the store that no page names are deleted; a crash may leave such bodies. With --older-than or
    --keep-versions, earlier versions of pages are deleted, too; the newest version of each page stays, whatever its
    age. SQLite needs room for a second copy of the store meanwhile. No crawl may be at work on the store.
    """

    async def run() -> dict[str, int]:
        with progress_line("deleting") as doing:
            async with _idle_store(db) as store:
                done = {"versions": await _prune(store, older_than, keep_versions)}
                doing("returning the space to the disk")
                before, after = await store.maintenance.compact()
                done |= {"bytes_before": before, "bytes_after": after}
                if store.bodies.are_outside:
                    doing("comparing the bodies with the store")
                    await store.recover(SystemClock().now())
                    done |= (await store.bodies.sweep())._asdict()
                await _empty_log(store, db)
        return done

    done = run_async(run())
    show(as_json, lambda: done, lambda: say(_describe_clean(done)))


for _name in ("prune", "compact"):  # earlier names
    _alias = copy_of(clean)
    _alias.hidden = True
    store.add_command(_alias, _name)


async def _prune(store: Store, age_s: float | None, keep_versions: int | None) -> int:
    if age_s is None and keep_versions is None:
        return 0
    before = _NEVER if age_s is None else SystemClock().now() - age_s
    return await store.maintenance.prune(before, keep_versions or _ALL)


def _describe_clean(done: dict[str, int]) -> str:
    """What was done, in a sentence."""
    parts = [f"deleted {many(done['versions'], 'earlier version')}"]
    if "deleted" in done:
        bodies = "body" if done["deleted"] == 1 else "bodies"
        unfinished = f" and {many(done['unfinished'], 'unfinished object')}" if done["unfinished"] else ""
        parts.append(f"deleted {done['deleted']:,} {bodies} outside the store{unfinished}; {done['left']:,} left")
    parts.append(f"{size(done['bytes_before'])} before, {size(done['bytes_after'])} now")
    return "; ".join(parts)


@store.command("grant-reader")
@click.argument("role", default="crawl_reader")
@db_option
def grant_reader(role: str, db: str) -> None:
    """Make ROLE (by default crawl_reader) on PostgreSQL, which may read the store and do nothing else.

    Its password is that in CRAWLER_READER_PASSWORD, or in the file that CRAWLER_READER_PASSWORD_FILE names. If the role
    exists, everything else that it was granted on the store is revoked. --db names a role that owns the
    store. Commands that only read can then use postgresql://crawl_reader@host/name.
    """
    password = secret(_READER_PASSWORD) or None
    is_new = run_async(grant_reader_at(store_at(db).store.db, role, password))
    say(f"{'made the role' if is_new else 'the role'} {role}, which may read {shown(db)}")
    if is_new and password is None:
        say(f"it has no password; the same command with {_READER_PASSWORD} sets one")
