"""The commands of the robot: ``rup info``, ``register``, ``unregister``, ``modify``, ``sync``, ``listen``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from crawler.cli.console import console
from crawler.cli.layout import facts
from crawler.cli.logs import set_up_logging
from crawler.cli.on_store import show
from crawler.cli.options import config_option, configured
from crawler.cli.output import say, tell
from crawler.cli.serving import listen_option, serve
from crawler.cli.shared import canonical, db_option, json_option, run_async, store_at
from crawler.errors import CrawlerError, Setting, UsageError, python_name, requiring
from crawler.formatting import many
from crawler.frontier.hints import HintCounts
from crawler.rup.commands import address_in, rup, span_in
from crawler.rup.mail.maildir import Maildir
from crawler.rup.protocol.forms import Preferences
from crawler.rup.robot.indexnow import Inbox, serving
from crawler.rup.robot.session import robot
from crawler.rup.robot.subscribe import Mailbox, SubmissionTally, Subscriber
from crawler.settings.loading import apply
from crawler.settings.settings import Settings
from crawler.settings.stored import settings_stored_at
from crawler.store.location import db_argument
from crawler.url import split

T = TypeVar("T")
Decorated = TypeVar("Decorated", bound=Callable[..., object])


def _requests(command: Decorated) -> Decorated:
    """Add the options of a command that sends requests: under the settings of the crawl, as a file changes them."""
    return db_option(config_option(hidden=True)(command))


def _with_preferences(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that set preferences; the command gets them as one :class:`Preferences`."""

    @click.option("--latency", metavar="N-UNIT", help="Time between two reports, such as 1-day or 6-hour.")
    @click.option("--exclude", multiple=True, metavar="REGEX", help="No reports of paths that match.")
    @click.option("--include-only", multiple=True, metavar="REGEX", help="Reports only of paths that match.")
    @wraps(command)
    def with_options(
        *, latency: str | None, exclude: tuple[str, ...], include_only: tuple[str, ...], **others: Any
    ) -> None:
        if exclude and include_only:
            raise UsageError("--exclude and --include-only: the protocol allows only one of them")
        for pattern in (*exclude, *include_only):
            if not pattern or any(c.isspace() for c in pattern):
                raise UsageError(f"{pattern!r}: a pattern must not be empty or contain blanks; write \\s for a blank")
        every = None if latency is None else span_in("--latency", latency)
        wanted = Preferences(latency=every, exclude=exclude or None, include_only=include_only or None)
        command(preferences=wanted, **others)

    return with_options


def _site(url: str) -> str:
    return split(canonical(url)).site


async def _settings(db: str, config: Path | None) -> Settings:
    """The settings of the crawl in the store, changed by the configuration file.

    Logging is set up by them.
    """
    settings = await settings_stored_at(store_at(db)) or Settings()
    settings = apply(configured(settings, config, {}), {"store.db": db}, source="command line")
    set_up_logging(settings.output.log_level, settings.output.log_format)
    return settings


def _asked(
    work: Callable[[Subscriber], Awaitable[T]],
    site: str | None,
    db: str,
    config: Path | None,
    *,
    make: bool = False,
) -> T:
    """Run ``work`` with a robot on the store, and return its result."""

    async def ask() -> T:
        settings = await _settings(db, config)
        async with robot(settings, site, tell, make=make) as subscriber:
            return await work(subscriber)

    try:
        return run_async(ask())
    except CrawlerError as error:  # these commands have no options for settings: the file and the crawl have them
        error.args = tuple(python_name(part) if isinstance(part, Setting) else part for part in error.args)
        raise


@rup.command(no_args_is_help=True)
@click.argument("site")
@_requests
@json_option
def info(site: str, db: str, config: Path | None, as_json: bool) -> None:
    """Ask SITE which updates it offers."""
    name = _site(site)
    offered = _asked(lambda subscriber: subscriber.info(name), name, db, config, make=True)
    offer = offered.info
    span = None if offer.max_query_span is None else str(offer.max_query_span)
    document = {"site": offered.site, "url": offered.url, **asdict(offer), "max_query_span": span}
    rows = [
        ("found at", offered.url),
        ("RUP-CGI", offer.cgi),
        ("authentication", offer.authentifier),
        ("latencies", ", ".join(offer.latencies) or "not stated"),
        ("exclude", ", ".join(offer.exclude) or "none"),
        ("include only", ", ".join(offer.include_only) or "none"),
        ("index reaches back", span or "not stated"),
    ]
    show(as_json, lambda: document, lambda: console.print(facts(rows)))


@rup.command(no_args_is_help=True)
@click.argument("site")
@click.option("--email", required=True, metavar="ADDRESS", help="The address for reports.")
@_with_preferences
@_requests
def register(site: str, email: str, preferences: Preferences, db: str, config: Path | None) -> None:
    """Ask SITE to mail reports of its changes to ADDRESS."""
    name, address = _site(site), address_in("--email", email)
    done = _asked(lambda subscriber: subscriber.register(name, address, preferences), name, db, config, make=True)
    say(f"registered with {name}: a report every {done.latency} to {address}")


@rup.command(no_args_is_help=True)
@click.argument("site")
@click.option("--forget", is_flag=True, help="Only delete the registration here, without a request to SITE.")
@_requests
def unregister(site: str, forget: bool, db: str, config: Path | None) -> None:
    """Ask SITE to send no more reports."""
    name = _site(site)
    say(_asked(lambda subscriber: subscriber.unregister(name, forget=forget), name, db, config))


@rup.command(no_args_is_help=True)
@click.argument("site")
@click.option("--email", metavar="ADDRESS", help="The new address for reports.")
@_with_preferences
@_requests
def modify(site: str, email: str | None, preferences: Preferences, db: str, config: Path | None) -> None:
    """Change the content, latency or address of reports. Options that are not given change nothing."""
    name, address = _site(site), None if email is None else address_in("--email", email)
    if address is None and preferences == Preferences():
        raise UsageError("nothing to change: give --email, --latency, --exclude or --include-only")
    done = _asked(lambda subscriber: subscriber.modify(name, address, preferences), name, db, config)
    say(f"modified at {name}: a report every {done.latency} to {done.email}")


@rup.command()
@click.argument("site", required=False)
@click.option("--maildir", type=click.Path(path_type=Path), metavar="DIR", help="Read reports from a Maildir.")
@click.option("--imap", metavar="URL", help="Read reports from imaps://user@host/folder.")
@click.option(
    "--inbox", hidden=True, type=click.Path(path_type=Path), metavar="DIR", help="Read the submissions of `rup listen`."
)
@click.option("--span", metavar="N-UNIT", help="Ask SITE for its changes in this span; needs no registration.")
@_requests
def sync(
    site: str | None,
    maildir: Path | None,
    imap: str | None,
    inbox: Path | None,
    span: str | None,
    db: str,
    config: Path | None,
) -> None:
    """Read new reports, and ask servers for lost ones; `crawler run` then fetches the changes.

    With --imap, CRAWLER_IMAP_PASSWORD contains the password, or CRAWLER_IMAP_PASSWORD_FILE the path of a file with it.
    """
    name = None if site is None else _site(site)
    reach = None if span is None else span_in("--span", span)
    if maildir is not None and imap is not None:
        raise UsageError("--maildir and --imap: give only one of them")
    if reach is not None and name is None:
        raise UsageError("--span: give the SITE to ask")

    submissions = None if inbox is None else Inbox(inbox)

    async def work(subscriber: Subscriber) -> None:
        is_idle = submissions is None and maildir is None and imap is None and reach is None
        try:
            if submissions is not None:
                say(_submitted(await subscriber.read_submissions(submissions)))
            if maildir is not None or imap is not None:
                async with _mailbox(maildir, imap) as box:
                    tally = await subscriber.read_mailbox(box)
                say(
                    f"mail: {many(tally.reports, 'report')} of {many(tally.changes, 'change')}; "
                    f"{many(tally.ignored, 'other mail')}, {many(tally.refused, 'path')} refused"
                )
            is_idle &= not await subscriber.catch_up(name)
            if reach is not None and name is not None:
                say(f"index of {name}: {many(await subscriber.index(name, reach), 'change')} in {reach}")
        finally:  # keeps the changes that were read before a server failed
            counts, queued = subscriber.hint_counts, await subscriber.queue()
            if counts != HintCounts() or queued:
                is_idle = False
                say(_came_to(counts, queued, db))
        if is_idle:
            say("nothing to do: no mailbox and no span given, and no question to a server is due")

    _asked(work, name, db, config)


def _submitted(tally: SubmissionTally) -> str:
    left = f"; {many(tally.left, 'submission')} left: the key file cannot be had now" if tally.left else ""
    return f"IndexNow: {many(tally.taken, 'submission')} of {many(tally.urls, 'URL')}; {tally.refused:,} refused{left}"


@rup.command()
@click.option(
    "--inbox",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder for submissions.",
)
@db_option
@listen_option("127.0.0.1:8789")
def listen(inbox: Path, db: str, listen: str) -> None:
    """Take submissions of IndexNow at /indexnow, for sites that the crawl knows; `rup sync --inbox` reads them.

    It only reads the store, so it works beside a crawl. Site owners must reach it: put it behind a server with TLS.
    """
    taken = partial(serving, store_at(db), inbox=Inbox(inbox))
    serve(listen, taken, db, "the listener; submissions stay in the folder", query="indexnow")


def _came_to(counts: HintCounts, queued: int, db: str) -> str:
    """The effect of what was read. ``queued`` counts visits of known pages; other URLs are queued already."""
    beyond = f", {counts.over:,} beyond the limit of mail" if counts.over else ""
    return (
        f"{many(counts.moved, 'known page')} and {many(counts.new, 'other')} to be visited{beyond}, "
        f"{counts.ignored:,} seen since, forbidden or unknown; {many(queued + counts.new, 'visit')} to be made by "
        f"`crawler run{db_argument(db)}`"
    )


@asynccontextmanager
async def _mailbox(maildir: Path | None, imap: str | None) -> AsyncIterator[Mailbox]:
    if maildir is not None:
        yield Maildir(maildir)
        return
    with requiring("updates", "--imap"):
        from crawler.rup.mail.imap import open_imap, read_folder, read_password
    folder, password = read_folder(imap or ""), read_password()
    async with open_imap(folder, password) as box:
        yield box
