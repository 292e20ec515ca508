"""The ledger of the seeds: what became of each, whether it needs a person, and the command that mends it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rich.text import Text

from crawler.cli.console import PrintableConsole
from crawler.clock import brief_time, iso
from crawler.errors import Setting
from crawler.formatting import counted, many
from crawler.frontier.operator import standing
from crawler.inspect.last_run import page_limit_reached
from crawler.inspect.unknown_hosts import KnownHosts, known_hosts
from crawler.reasons import ReasonCode
from crawler.settings.keys import terminal_name
from crawler.settings.stored import stored_settings
from crawler.store.location import db_argument
from crawler.store.statements import load_statements
from crawler.url import host_of, split

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.inspect", "seeds.sql")
_MOST_AT_THE_END = 50_000  # seeds, which the store counts within a second
_NAMED = 20  # in the summary of a run
_MOST_SHOWN = 5  # at the end of a run
_LONGEST_SHOWN = 300  # characters of a seed


def _again(seed: Seed) -> str:
    """Its replacements; else another request, if the seed was given up: one that is waited for is tried again."""
    if seed.replacements:
        return _replaced(seed)
    return f"run --refresh {quote(seed.url)}" if seed.robots_problem is None else _explained(seed)


def _replaced(seed: Seed) -> str:
    return f"run {' '.join(map(quote, seed.replacements))}"


def _forgotten(seed: Seed) -> str:
    return f"store forget {quote(seed.url)}"


def _read_again(seed: Seed) -> str | None:
    """The URLs that a skipped line perhaps meant; else its list anew, if that is a file."""
    if seed.meant:
        return _replaced(seed)
    is_file = seed.source is not None and os.path.isabs(seed.source)
    return f"run --seeds {quote(seed.source or '')} --skip-bad-seeds" if is_file else None


def _explained(seed: Seed) -> str:
    return f"why {quote(seed.leads_to or seed.url)}"


def _refused(seed: Seed) -> str:
    """No command permits a private address: a run would store that for every other URL of the crawl."""
    return _forgotten(seed) if seed.reason_code is ReasonCode.ADDRESS else _explained(seed)


def _unblocked(seed: Seed) -> str:
    return f"control unblock {quote(seed.blocked_as or seed.site)}"


def _let_in(seed: Seed) -> str:
    return f"store forget {quote(seed.leads_to or seed.url)} --undo"


class Outcome(StrEnum):
    """What became of a seed, as the view ``seeds`` says it, with what mends it; first what needs a person."""

    meaning: str
    mend: Callable[[Seed], str | None] | None
    needs_person: bool

    def __new__(
        cls,
        value: str,
        meaning: str = "",
        mend: Callable[[Seed], str | None] | None = _explained,
        needs_person: bool = True,
    ) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning, member.mend, member.needs_person = meaning, mend, needs_person
        return member

    @property
    def label(self) -> str:
        """The code in words."""
        return self.value.replace("_", " ")

    NO_SUCH_HOST = (
        "no_such_host",
        "the host has no address: correct the name (`crawler run URL`), or try it again",
        _again,
    )
    LEFT_SCOPE = "left_scope", "redirected out of the scope: add the address that it leads to", _again
    NOT_FOUND = "not_found", "there is no page: give the address of another page", _again
    SILENT = (
        "silent",
        "no answer: correct the port (`crawler run URL`), or try it again when the server answers",
        _again,
    )
    DEFERRED = "deferred", "its robots.txt cannot be had, so nothing else is requested: tell the owner, or wait"
    NOT_REACHED = (
        "not_reached",
        "not reached before the sampling frame was closed: tell the owner, or draw with a longer sample.frame_patience",
    )
    CERTIFICATE = "certificate", "no secure connection: trust its certificate authority, or try it again", _again
    BAD_ANSWER = "bad_answer", "the server refused it or sent no usable answer", _again
    REDIRECTS = "redirects", "its redirects or main sites lead to no page"
    REFUSED_ADDRESS = "refused_address", "the crawler may not connect to its address or port", _refused
    OTHER_TYPE = "other_type", "another kind than the crawl reads"
    OUT_OF_SCOPE = "out_of_scope", "the settings of the crawl leave it out"
    WALLED = "walled", "a bot defence or a price in place of the page: write to the owner of the site"
    CLOSED = "closed", "closed by robots.txt: only the owner of the site can open it"
    SKIPPED = "skipped", "a line that is no URL: correct it, and read the list again", _read_again
    BLOCKED = "blocked", "blocked by the operator", _unblocked, False
    FORGOTTEN = "forgotten", "forgotten by the operator", _let_in, False
    HELD_BACK = "held_back", "a limit holds it back", _explained, False
    WAITS = "waits", "waits for its turn", _explained, False
    NOT_DRAWN = "not_drawn", "not in the random sample", None, False
    ELSEWHERE = "elsewhere", "requested by the task of another bucket", None, False
    NOT_KEPT = "not_kept", "fetched, and not kept", _explained, False
    FETCHED = "fetched", "fetched", None, False


class Seed(NamedTuple):
    """A seed with what became of it, or a line of a list that was skipped. Times in seconds since the epoch."""

    url: str  # of a skipped line its text
    outcome: Outcome
    leads_to: str | None  # the end of its redirects
    reason_code: ReasonCode | None  # with the sentence `reason`: of the URL at the end; None: of a skipped line
    reason: str
    pages: int  # of the site at the end
    failing_since: float | None
    next_at: float | None
    leads_to_domain: str | None  # the registered domain of leads_to, if it is not that of the seed
    robots_problem: str | None = None  # what came in place of the robots.txt that it waits for
    robots_attempts: int | None = None
    blocked_as: str | None = None  # the name under which the operator has blocked its site
    source: str | None = None  # the list of a skipped line, and its number
    line: int | None = None
    meant: tuple[str, ...] = ()  # the URLs that were perhaps meant by a skipped line, or by the name of a host
    is_mended: bool = False  # all its replacements are seeds too

    @property
    def site(self) -> str:
        """The site of the URL at the end."""
        return split(self.leads_to or self.url).site

    @property
    def replacements(self) -> tuple[str, ...]:
        """The URLs to crawl in its place: what was perhaps meant, where it leads, or the front page of its site."""
        front = "/".join([*self.url.split("/", 3)[:3], ""])
        if self.outcome is Outcome.LEFT_SCOPE and self.leads_to is not None:
            return (self.leads_to,)
        return (front,) if self.outcome is Outcome.NOT_FOUND and front != self.url else self.meant

    @property
    def host(self) -> str:
        """The host of the URL at the end."""
        return host_of(self.leads_to or self.url)

    def is_mended_by(self, seeds: Collection[str]) -> bool:
        """Whether all its replacements are among ``seeds``. A skipped line is no seed: the view leaves it out then."""
        return self.reason_code is not None and bool(self.replacements) and all(u in seeds for u in self.replacements)

    def remedy(self, db: str, higher_limit: str = "") -> str | None:
        """The command that mends it in the store ``db``, or that shows more; ``None`` if there is nothing to do.

        If its replacements are seeds too, only the wrong one is left to be taken out. ``higher_limit`` is the option
        that a run needs beside it.
        """
        make = _forgotten if self.is_mended else self.outcome.mend
        command = None if make is None else make(self)
        if command is None:
            return None
        return f"crawler {command}{higher_limit if command.startswith('run ') else ''}{db_argument(db)}"

    def describe(self, now: float) -> str:
        """What became of it, as a sentence."""
        if self.reason_code is None:
            return f"{self.source}, line {self.line}: {self.reason}"
        leads = "" if self.leads_to is None else f"leads to {self.leads_to}: "
        if self.outcome is Outcome.LEFT_SCOPE and self.leads_to_domain is not None:
            leads = f"leads to {self.leads_to}, of another registered domain ({self.leads_to_domain}): "
        said = self.reason_code.message(self.reason, terminal_name) or self.reason_code.meaning
        if self.robots_problem is not None and self.robots_attempts and self.failing_since is not None:
            since = f"{many(self.robots_attempts, 'attempt')} since {iso(self.failing_since)}"
            if self.reason_code is ReasonCode.FRAME:
                return f"{leads}{said}; robots.txt: {self.robots_problem} ({since})"
            again = "now" if self.next_at is None or self.next_at <= now else f"at {brief_time(self.next_at, now)}"
            return f"{leads}robots.txt: {self.robots_problem} ({since}, next {again})"
        since = "" if self.failing_since is None else f", no answer since {iso(self.failing_since)}"
        until = f", until {brief_time(self.next_at, now)}" if self.next_at is not None and self.next_at > now else ""
        return f"{leads}{said}{since}{until}"

    def as_json(self) -> dict[str, Any]:
        """The seed as a JSON object."""
        return self._asdict() | {
            "meant": " ".join(self.meant) or None,
            "needs_person": self.outcome.needs_person,
        }


#: Seeds, each with its outcome, of which a run has told.
Told = frozenset[tuple[str, Outcome]]


class Ledger(NamedTuple):
    """The seeds of a crawl, those that need a person first."""

    at: float
    db: str
    seeds: Sequence[Seed]
    higher_limit: str = ""  # the option that a run needs to fetch anything, if the crawl has all pages of its limit

    def remedy(self, seed: Seed) -> str | None:
        """The command that mends ``seed``."""
        return seed.remedy(self.db, self.higher_limit)

    def counts(self) -> dict[Outcome, int]:
        """How many seeds there are of each outcome, in the order of :class:`Outcome`."""
        return in_order(Counter(seed.outcome for seed in self.seeds))

    @property
    def open(self) -> list[Seed]:
        """The seeds that need a person."""
        return [seed for seed in self.seeds if seed.outcome.needs_person]

    def describe(self, seed: Seed) -> str:
        """What became of ``seed``, with the host that was perhaps meant."""
        said = seed.describe(self.at)
        return f"{said}; the crawl knows {host_of(seed.meant[0])}" if seed.meant and seed.reason_code else said

    def as_json(self) -> dict[str, Any]:
        """The ledger as one JSON object."""
        return self.in_short() | {"seeds": [self._line(seed) for seed in self.seeds]}

    def in_short(self) -> dict[str, Any]:
        """The counts, and the first seeds that need a person: for the summary of a run."""
        return {
            "count": len(self.seeds),
            "outcomes": dict(self.counts()),
            "need_person": len(self.open),
            "first": [self._line(seed) for seed in self.open[:_NAMED]],
        }

    def _line(self, seed: Seed) -> dict[str, Any]:
        return seed.as_json() | {"remedy": self.remedy(seed), "text": self.describe(seed)}

    def told(self) -> Told:
        """The seeds that need a person, as :meth:`lines_at_end` takes those of which a run before has told."""
        return frozenset((seed.url, seed.outcome) for seed in self.open)

    def lines_at_end(self, *, has_causes: bool, told: Told = frozenset()) -> list[str]:
        """Sentences for the end of a run about the first seeds that need a person; of those in ``told``, their number.

        A run tells of the lines that it skips when it reads them, so they only count here. ``has_causes`` says that the
        causes of a run without a page were told: then only hosts that do not exist are left to tell of.
        """
        new = [seed for seed in self.open if (seed.url, seed.outcome) not in told]
        named = {Outcome.NO_SUCH_HOST} if has_causes else {*Outcome} - {Outcome.SKIPPED}
        open_seeds = [seed for seed in new if seed.outcome in named]
        said = [
            f"seed {short(seed.url)}: {self.describe(seed)}; `{self.remedy(seed)}`" for seed in open_seeds[:_MOST_SHOWN]
        ]
        if len(self.open) > max(len(said), has_causes):
            listed = f"`crawler seeds{db_argument(self.db)}` lists them with what mends each"
            said.append(f"{many(len(self.open), 'seed')} {need_a_person(len(self.open))}: {listed}")
        return said


def in_order(counts: Mapping[Outcome, int]) -> dict[Outcome, int]:
    """The counts that are not 0, in the order of :class:`Outcome`."""
    return {outcome: counts[outcome] for outcome in Outcome if counts.get(outcome)}


def short(text: str) -> str:
    """A URL or a line for a person; the JSON of the ledger has it in full."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text):,} characters)"


def need_a_person(count: int) -> str:
    """The verb for ``count`` seeds."""
    return "needs a person" if count == 1 else "need a person"


def describe_outcomes(outcomes: Mapping[str, int]) -> str:
    """The counts of the outcomes in one line."""
    return counted((Outcome(code).label, n) for code, n in outcomes.items())


async def read_ledger(store: Store, db: str, now: float) -> Ledger:
    """The ledger of a store that ``--db`` calls ``db``: one statement for all seeds."""
    order = {outcome: place for place, outcome in enumerate(Outcome)}
    seeds = sorted(map(_seed, await store.query(_SQL["ledger"])), key=lambda seed: order[seed.outcome])
    if any(seed.outcome is Outcome.BLOCKED for seed in seeds):
        stands = standing(await store.control.orders())
        seeds = [
            seed._replace(blocked_as=next(iter(stands.names_of(seed.leads_to or seed.url)), None)) for seed in seeds
        ]
    if any(seed.outcome is Outcome.NO_SUCH_HOST for seed in seeds):
        known = await known_hosts(store)
        seeds = [_spelled_right(seed, known) if seed.outcome is Outcome.NO_SUCH_HOST else seed for seed in seeds]
    urls = {seed.url for seed in seeds}
    seeds = [seed._replace(is_mended=seed.is_mended_by(urls)) if seed.outcome.needs_person else seed for seed in seeds]
    return Ledger(now, db, seeds, await _higher_limit(store))


async def _higher_limit(store: Store) -> str:
    """The option with which a run goes on if the crawl has all pages that its last run allowed; else ""."""
    settings = await stored_settings(store)
    if settings is None or settings.limits.max_pages is None or not await page_limit_reached(store, settings):
        return ""
    return f" {terminal_name(Setting('limits.max_pages'))} {2 * settings.limits.max_pages}"


def _spelled_right(seed: Seed, known: KnownHosts) -> Seed:
    """The seed with the URL that was perhaps meant: the same on the known host that is spelled most like its host."""
    near = known.nearest(seed.host)
    if near is None:
        return seed
    scheme, separator, rest = (seed.leads_to or seed.url).partition("://")
    return seed._replace(meant=(f"{scheme}{separator}{near}{rest.removeprefix(seed.host)}",))


async def ledger_at_end(store: Store, db: str, now: float) -> Ledger | None:
    """The ledger for the end of a run; ``None`` for so many seeds that the end would take long."""
    (found,) = await store.query(_SQL["count_seeds"])
    return None if found["seeds"] > _MOST_AT_THE_END else await read_ledger(store, db, now)


async def describe_patterns(store: Store, include: Sequence[str]) -> list[str]:
    """A sentence if ``include``, the patterns of the user, leaves out every URL that links led to."""
    if not include:
        return []
    (found,) = await store.query(_SQL["taken_links"])
    if found["are_taken"] or not found["left_out"]:
        return []
    name, patterns = terminal_name(Setting("scope.include")), ", ".join(map(repr, include))
    return [
        f"{name} ({patterns}) leaves out all that the seeds link to ({many(found['left_out'], 'URL')}); the patterns "
        "are regular expressions, searched for in whole URLs"
    ]


def _seed(row: Mapping[str, Any]) -> Seed:
    elsewhere = row["leads_to"] is not None and row["leads_to_domain"] != row["registered_domain"]
    read = {name: row[name] for name in Seed._fields if name in row}
    read |= {
        "outcome": Outcome(row["outcome"]),
        "reason_code": None if row["reason_code"] is None else ReasonCode(row["reason_code"]),
        "leads_to_domain": row["leads_to_domain"] if elsewhere else None,
        "meant": tuple((row["meant"] or "").split()),
    }
    return Seed(**read)


def render(ledger: Ledger, console: PrintableConsole, *, all_seeds: bool) -> None:
    """Print the ledger for people: by outcome, a seed a line, and under it the command that mends it.

    ``all_seeds`` lists every seed. Otherwise those that need a person are listed, and the rest counted.
    """
    open_seeds = len(ledger.open)
    console.print(f"{many(len(ledger.seeds), 'seed')}, {open_seeds:,} {need_a_person(open_seeds)}")
    for outcome, count in ledger.counts().items():
        console.print()
        console.print(Text(f"{outcome.label} ({many(count, 'seed')}): {outcome.meaning}", style="bold"))
        listed = [seed for seed in ledger.seeds if seed.outcome is outcome]
        if all_seeds or outcome.needs_person:
            _print_seeds(listed, ledger, console)
        else:
            pages = f"{sum(seed.pages for seed in listed):,} pages on their sites"
            console.print(Text(f"  {many(count, 'seed')}, {pages} (--all lists them)"))
    if any(seed.outcome is not Outcome.SKIPPED for seed in ledger.open):
        console.print()
        console.print(Text(f"To leave a seed out: crawler store forget SEED{db_argument(ledger.db)}"), soft_wrap=True)


def _print_seeds(seeds: Iterable[Seed], ledger: Ledger, console: PrintableConsole) -> None:
    for seed in seeds:
        pages = f" ({many(seed.pages, 'page')} on its site)" if seed.pages else ""
        console.print(Text(f"  {short(seed.url)}  {ledger.describe(seed)}{pages}", overflow="fold"))
        if seed.outcome.needs_person and (remedy := ledger.remedy(seed)):
            console.print(Text(f"    {remedy}", style="cyan"), soft_wrap=True)  # a line that can be pasted
