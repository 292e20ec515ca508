"""The ledger of the seeds: what became of each, whether it needs a person, and the command that mends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rich.text import Text

from crawler.cli.console import PrintableConsole
from crawler.clock import brief_time, iso
from crawler.errors import Setting
from crawler.formatting import counted, many
from crawler.inspect.last_run import page_limit_reached
from crawler.inspect.unknown_hosts import known_hosts, nearest_host
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
_MOST_SHOWN = 5  # at the end of a run, and in its summary
_LONGEST_SHOWN = 300  # characters
_AT_ONCE = 20  # URLs of one command
_OF_PERSON = ("URL",)  # stands for what a person must name
#: The commands that mend a seed, or show more of it. They work also while a run is on.
QUEUE, BLOCK, WHY = "control queue", "control block", "why"


class Outcome(StrEnum):
    """What became of a seed, as the view ``seeds`` says it; first what needs a person."""

    meaning: str
    command: str | None  # None: it needs no person

    def __new__(cls, value: str, meaning: str = "", command: str | None = None) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning, member.command = meaning, command
        return member

    @property
    def label(self) -> str:
        """The code in words."""
        return self.value.replace("_", " ")

    NO_SUCH_HOST = "no_such_host", "the host has no address: queue the right URL, or try it again", QUEUE
    LEFT_SCOPE = "left_scope", "redirected out of the scope: queue the address that it leads to", QUEUE
    NOT_FOUND = "not_found", "there is no page: queue the address of another page, or try it again", QUEUE
    SILENT = "silent", "no answer: queue the URL with the right port, or try it again", QUEUE
    DEFERRED = "deferred", "no robots.txt so far, so nothing else is requested: tell the owner, or wait", WHY
    NOT_REACHED = "not_reached", "not reached before the sampling frame was closed (sample.frame_patience)", WHY
    CERTIFICATE = "certificate", "no secure connection: trust its certificate authority, or try it again", QUEUE
    BAD_ANSWER = "bad_answer", "the server refused it or sent no usable answer: try it again", QUEUE
    REDIRECTS = "redirects", "its redirects or main sites lead to no page", WHY
    REFUSED_ADDRESS = "refused_address", "the crawler may not connect to its address or port", BLOCK
    OTHER_TYPE = "other_type", "another kind than the crawl reads", WHY
    OUT_OF_SCOPE = "out_of_scope", "the settings of the crawl leave it out", WHY
    WALLED = "walled", "a bot defence or a price in place of the page: write to the owner of the site", WHY
    CLOSED = "closed", "closed by robots.txt: only the owner of the site can open it", WHY
    SKIPPED = "skipped", "a line that is no URL: queue what was meant, or correct it in the list", QUEUE
    BLOCKED = "blocked", "blocked by the operator"
    FORGOTTEN = "forgotten", "forgotten by the operator"
    HELD_BACK = "held_back", "a limit holds it back"
    WAITS = "waits", "waits for its turn"
    NOT_DRAWN = "not_drawn", "not in the random sample"
    ELSEWHERE = "elsewhere", "requested by the task of another bucket"
    NOT_KEPT = "not_kept", "fetched, and not kept"
    FETCHED = "fetched", "fetched"


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
    source: str | None = None  # the list of a skipped line, and its number
    line: int | None = None
    meant: tuple[str, ...] = ()  # the URLs that were perhaps meant by a skipped line, or by the name of a host
    is_mended: bool = False  # all its replacements are seeds too

    @property
    def needs_person(self) -> bool:
        """Whether there is something to do about it, and nobody has done it."""
        return self.outcome.command is not None and not self.is_mended

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

    def remedy(self) -> tuple[str, tuple[str, ...]] | None:
        """The command that mends it, or that shows more, with the URLs; ``None`` if it needs no person.

        A seed that is still tried is requested again without a command. What a skipped line meant, a person knows.
        """
        command, urls = self.outcome.command, self.replacements
        if not self.needs_person or command is None:
            return None
        if self.reason_code is None and not urls:
            return command, _OF_PERSON
        if command is QUEUE and not urls and self.robots_problem is not None:
            command = WHY
        if command is BLOCK:
            return command, (split(self.leads_to or self.url).site,)
        again = self.url if command is QUEUE else self.leads_to or self.url
        return command, urls or (again,)

    def describe(self, now: float) -> str:
        """What became of it, as a sentence."""
        if self.reason_code is None:
            return f"{self.source}, line {self.line}: {self.reason}"
        leads = "" if self.leads_to is None else f"leads to {self.leads_to}: "
        if self.outcome is Outcome.LEFT_SCOPE and self.leads_to_domain is not None:
            leads = f"leads to {self.leads_to}, of another registered domain ({self.leads_to_domain}): "
        meant = f"; the crawl knows {host_of(self.meant[0])}" if self.meant else ""
        said = self.reason_code.message(self.reason, terminal_name) or self.reason_code.meaning
        if self.robots_problem is not None and self.robots_attempts and self.failing_since is not None:
            since = f"{many(self.robots_attempts, 'attempt')} since {iso(self.failing_since)}"
            if self.reason_code is ReasonCode.FRAME:
                return f"{leads}{said}; robots.txt: {self.robots_problem} ({since})"
            again = "now" if self.next_at is None or self.next_at <= now else f"at {brief_time(self.next_at, now)}"
            return f"{leads}robots.txt: {self.robots_problem} ({since}, next {again}){meant}"
        since = "" if self.failing_since is None else f", no answer since {iso(self.failing_since)}"
        until = f", until {brief_time(self.next_at, now)}" if self.next_at is not None and self.next_at > now else ""
        return f"{leads}{said}{since}{until}{meant}"


#: Seeds, each with its outcome, of which a run has told.
Told = frozenset[tuple[str, Outcome]]


class Ledger(NamedTuple):
    """The seeds of a crawl, those that need a person first."""

    at: float
    db: str
    seeds: Sequence[Seed]
    page_limit: int | None = None  # of the last run, if the crawl has so many pages

    def remedy(self, seed: Seed) -> str | None:
        """The command that mends ``seed``, for a shell; ``None`` if there is none."""
        found = seed.remedy()
        return None if found is None else self._command(*found)

    def _command(self, command: str, urls: Iterable[str]) -> str:
        return f"crawler {command} {' '.join(map(quote, urls))}{db_argument(self.db)}"

    def counts(self) -> dict[Outcome, int]:
        """How many seeds there are of each outcome, in the order of :class:`Outcome`."""
        return in_order(Counter(seed.outcome for seed in self.seeds))

    @property
    def open(self) -> list[Seed]:
        """The seeds that need a person."""
        return [seed for seed in self.seeds if seed.needs_person]

    def as_json(self) -> dict[str, Any]:
        """The ledger as one JSON object."""
        return self.in_short() | {"seeds": [self._line(seed) for seed in self.seeds]}

    def in_short(self, told: Told = frozenset()) -> dict[str, Any]:
        """The counts, and the first seeds that need a person and are not in ``told``: for the summary of a run."""
        return {
            "count": len(self.seeds),
            "outcomes": dict(self.counts()),
            "need_person": len(self.open),
            "first": [
                {"url": short(seed.url), "outcome": seed.outcome, "text": short(seed.describe(self.at))}
                | {"remedy": short(self.remedy(seed) or "") or None}
                for seed in self._new(told)[:_MOST_SHOWN]
            ],
            "listed_by": f"crawler seeds{db_argument(self.db)}",
        }

    def _line(self, seed: Seed) -> dict[str, Any]:
        more = {"meant": " ".join(seed.meant) or None, "needs_person": seed.needs_person, "remedy": self.remedy(seed)}
        return seed._asdict() | more | {"text": seed.describe(self.at)}

    def told(self) -> Told:
        """The seeds that need a person, as the end of the next run takes those of which it need not tell."""
        return frozenset((seed.url, seed.outcome) for seed in self.open)

    def _new(self, told: Told) -> list[Seed]:
        return [seed for seed in self.open if (seed.url, seed.outcome) not in told]

    def lines_at_end(self, *, has_causes: bool, told: Told = frozenset()) -> list[str]:
        """Sentences for the end of a run about the first seeds that need a person; of those in ``told``, their number.

        A run tells of the lines that it skips when it reads them, so they only count here. ``has_causes`` says that the
        causes of a run without a page were told: then only hosts that do not exist are left to tell of.
        """
        named = {Outcome.NO_SUCH_HOST} if has_causes else {*Outcome} - {Outcome.SKIPPED}
        open_seeds = [seed for seed in self._new(told) if seed.outcome in named]
        said = [
            f"seed {short(seed.url)}: {short(seed.describe(self.at))}; `{short(self.remedy(seed) or '')}`"
            for seed in open_seeds[:_MOST_SHOWN]
        ]
        if len(self.open) > max(len(said), has_causes):
            listed = f"`crawler seeds{db_argument(self.db)}` lists them with what mends each"
            said.append(f"{many(len(self.open), 'seed')} {need_a_person(len(self.open))}: {listed}")
        return said

    def by_command(self, seeds: Iterable[Seed]) -> Iterator[tuple[list[Seed], list[str]]]:
        """``seeds`` with the same replacement, and its command; then the others, which share commands.

        ``crawler why`` takes one URL: its command is that of the first seed.
        """
        groups: dict[tuple[str, ...], list[Seed]] = {}
        for seed in seeds:
            groups.setdefault(seed.replacements, []).append(seed)
        others = groups.pop((), [])
        for group in groups.values():
            yield group, [short(command) for seed in group[:1] if (command := self.remedy(seed))]
        urls: dict[tuple[str, bool], list[str]] = {}
        for found in filter(None, (seed.remedy() for seed in others)):
            urls.setdefault((found[0], found[1] is _OF_PERSON), []).extend(found[1])
        commands = [
            self._command(command, batch)
            for (command, _), found in urls.items()
            for batch in ([found[:1]] if command == WHY else _batches(list(dict.fromkeys(found))))
        ]
        yield others, commands


def in_order(counts: Mapping[Outcome, int]) -> dict[Outcome, int]:
    """The counts that are not 0, in the order of :class:`Outcome`."""
    return {outcome: counts[outcome] for outcome in Outcome if counts.get(outcome)}


def short(text: str) -> str:
    """A URL or a line for a person; the JSON of the ledger has it in full."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text):,} characters)"


def _batches(urls: Sequence[str]) -> Iterator[Sequence[str]]:
    return (urls[start : start + _AT_ONCE] for start in range(0, len(urls), _AT_ONCE))


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
    if any(seed.outcome is Outcome.NO_SUCH_HOST for seed in seeds):
        known = await known_hosts(store)
        seeds = [_spelled_right(seed, known) if seed.outcome is Outcome.NO_SUCH_HOST else seed for seed in seeds]
    urls = {seed.url for seed in seeds}
    seeds = [seed._replace(is_mended=seed.is_mended_by(urls)) if seed.outcome.command else seed for seed in seeds]
    settings = await stored_settings(store)
    at_limit = settings is not None and await page_limit_reached(store, settings)
    return Ledger(now, db, seeds, settings.limits.max_pages if settings is not None and at_limit else None)


def _spelled_right(seed: Seed, known: Sequence[str]) -> Seed:
    """The seed with the URL that was perhaps meant: the same on the known host that is spelled most like its host."""
    near = nearest_host(seed.host, known)
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
        seeds = [seed for seed in ledger.seeds if seed.outcome is outcome]
        listed = [seed for seed in seeds if all_seeds or seed.needs_person]
        console.print()
        console.print(Text(f"{outcome.label} ({many(count, 'seed')}): {outcome.meaning}", style="bold"))
        for group, commands in ledger.by_command(listed):
            for seed in group:
                pages = f" ({many(seed.pages, 'page')} on its site)" if seed.pages else ""
                console.print(Text(f"  {short(seed.url)}  {short(seed.describe(ledger.at))}{pages}", overflow="fold"))
            for command in commands:  # a line that can be pasted
                console.print(Text(f"    {command}", style="cyan"), soft_wrap=True)
        if rest := [seed for seed in seeds if not all_seeds and not seed.needs_person]:
            on = "its site" if len(rest) == 1 else "their sites"
            pages = f"{many(sum(seed.pages for seed in rest), 'page')} on {on}"
            instead = " with others in their place" if len(rest) > 1 else " with another in its place"
            others = instead if outcome.command else ""
            console.print(Text(f"  {many(len(rest), 'seed')}{others}, {pages} (--all lists them)"))
    if open_seeds:
        argument = db_argument(ledger.db)
        if ledger.page_limit is not None:
            limit = f"{terminal_name(Setting('limits.max_pages'))} {ledger.page_limit}"
            console.print(
                f"\nThe crawl has all pages of {limit}: the next run needs a higher limit to fetch what is queued"
            )
        console.print()
        console.print(Text(f"To leave a site out: crawler control block SITE{argument}"), soft_wrap=True)
