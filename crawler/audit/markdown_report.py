"""The audit as a Markdown document, for example for an ethics board. Markdown is also readable as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from crawler.atomic_files import AtomicFiles
from crawler.audit.checks import TITLES
from crawler.audit.evidence import evidence
from crawler.audit.records import TOLERANCE_S, RunRecord
from crawler.audit.run_audit import MAX_LISTED, AuditResult
from crawler.audit.study import StudyFacts
from crawler.audit.totals import unsent_sentence
from crawler.clock import iso
from crawler.formatting import instant, many, seconds
from crawler.frontier.operator import Standing
from crawler.frontier.sample_design import Per, amount_of
from crawler.frontier.scope import ScopeMode
from crawler.model import Reading, RobotsAction
from crawler.reasons import ReasonCode
from crawler.terminal_text import printable
from crawler.version import VERSION

_READINGS = {
    Reading.STRICT: "strict: a page was fetched only if both the 1996 draft and RFC 9309 allow it",
    Reading.DRAFT1996: "draft1996: as the Internet-Draft of 1996 reads it",
    Reading.RFC9309: "rfc9309: as RFC 9309 reads it",
}

_SCOPES = {
    ScopeMode.PREFIX: "below the folders of its seeds",
    ScopeMode.HOST: "on the hosts of its seeds",
    ScopeMode.DOMAIN: "on the registered domains of its seeds",
    ScopeMode.ANY: "to any site",
}

_METHOD = """\
The audit does not rely on what the crawler concluded while it ran. It reads the log of every request (address, purpose,
start, end, status, `Retry-After`), every answer for robots.txt with the headers that say how long it holds and whether
it is whole, and the settings of each run. From these it checks each request again, site by site, in the order of time:

- Each robots.txt version is checked against its SHA-256 and parsed again. The audit asks it about each address that was
  fetched while it was in force, as the robot and in the reading of that run. An answer that is no file counts as the
  protocol says: 401 and 403 close the site (unless the run followed RFC 9309 alone), other 4xx statuses leave it open,
  and a failing server (5xx, 429, no answer) closes it until it answers again.
- The audit computes the end of a version from the headers of its answer, by the rules of HTTP. It does not rely on the
  end that the crawl recorded. A file found behind a redirect counts for the site that was asked first, and each hop
  must be the target of the hop before it.
- The pause before a request is measured from the end of the request before it in the same politeness group. The longest
  of these is required: the delay of the run; a multiple of the time that the last answer took, up to a limit; and the
  `Crawl-delay` of the site's robots.txt.
- After a 429, a 503, or an error with a `Retry-After`, the group must have been left alone for the full time.
- No request of a crawl may have begun on a site after the crawl had carried out the operator's order to block it, nor
  half a second after the operator had ordered a pause, or a block that no crawl has carried out.
- Request numbers must run from 1 without a gap, and each run must have as many requests as its processes counted. So a
  request cannot be removed from the log, not even from its end, without changing the counts too.

Times are compared with a tolerance of {tolerance}."""

_LIMITS = """\
- The crawler itself writes the log. The audit proves that the crawler kept the rules if the log is true. A server's own
  access log is the independent witness: times and addresses here can be compared with it.
- The log lacks requests that were under way when the process was killed (`kill -9`, loss of power), and those answered
  since its last commit. The pause of their groups was started again afterwards.
- Times are those of the crawling machine. Within a run they follow a clock that cannot step; between runs they follow
  the clock of the system.
- A request for robots.txt follows redirects (RFC 9309, 2.3.1.2). The rules of the redirect's target are not
  asked."""


def write_report(path: Path, result: AuditResult) -> None:
    """Write the document, whole or not at all. Raises :class:`UsageError` if the file cannot be written."""
    with AtomicFiles() as files:
        file = files.open(path).file
        file.writelines(f"{line}\n".encode(errors="backslashreplace") for line in document(result))


def document(result: AuditResult) -> Iterator[str]:
    """The lines of the document. Consecutive empty lines are reduced to one."""
    before = ""
    for line in _sections(result):
        if line or before:
            yield line
        before = line


def _sections(result: AuditResult) -> Iterator[str]:
    totals = result.totals
    yield "# Audit of a web crawl"
    yield ""
    yield f"Made on {iso(result.at)} by `crawler audit` {VERSION}. All times are UTC."
    yield f"SHA-256 of the records that were judged: `{result.sha256}`"
    yield ""
    yield from _section("Result", _result(result))
    yield from _section("Design and scope", _design(result))
    yield from _section("Runs and their settings", _runs(result.runs, totals.requests_per_run))
    yield from _section("What was requested", _requested(result))
    yield from _section("How often sites were contacted", _contacts(result.study))
    yield from _section("What is kept of the pages", _kept(result))
    yield from _section("Opting out, and what became of it", _opting_out(result))
    yield from _section("The rules, and how they were checked", _checks(result))
    yield from _section("Violations", _violations(result))
    yield from _section("What was left out, and why", _left_out(result))
    yield from _section("Sites that asked for the most restraint", _restraint(result))
    yield from _section("What this audit does not prove", _not_proven(result))
    yield from _section("Repeating the audit", _repeating())


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield from lines
    yield ""


def _result(result: AuditResult) -> Iterator[str]:
    totals = result.totals
    if not totals.requests:
        yield "The log is empty: no request was ever sent, and there is nothing to judge."
        return
    span = f"{many(totals.requests, 'request')} to {many(totals.sites, 'site')}"
    if totals.first_at is not None and totals.last_at is not None:
        span += f", from {iso(totals.first_at)} to {iso(totals.last_at)}"
    if result.violation_count:
        yield f"**{many(result.violation_count, 'violation')} found** in {span}; the section on violations lists them."
    else:
        yield f"**No violation was found** in {span}."


def _runs(runs: Sequence[RunRecord], requests: dict[int, int]) -> Iterator[str]:
    if not runs:
        yield "There was no run."
        return
    rows = [
        (
            str(run.run),
            iso(run.started_at),
            "not recorded" if run.finished_at is None else iso(run.finished_at),
            run.ended_by or "",
            requests.get(run.run, 0),
        )
        for run in runs
    ]
    yield from _table(("run", "from", "to", "ended by", "requests"), rows)
    numbers: dict[tuple[str, ...], list[int]] = {}
    for run in runs:
        numbers.setdefault(tuple(_settings(run)), []).append(run.run)
    for lines, of_runs in numbers.items():
        yield f"**{'Run' if len(of_runs) == 1 else 'Runs'} {_ranges(of_runs)}**"
        yield ""
        yield from lines
        yield ""


def _settings(run: RunRecord) -> Iterator[str]:
    """The settings of a run that decided its requests; equal lines for runs with equal settings."""
    pauses = run.politeness
    cap = "" if pauses.crawl_delay_cap_s is None else f", but {seconds(pauses.crawl_delay_cap_s)} at most"
    whom = "" if run.contact else ", without a contact, which is allowed on loopback only"
    yield f"- The User-Agent was {_code(run.user_agent)}{whom}."
    yield f"- In robots.txt the crawler obeyed the records for {_code(run.agent)}."
    if run.purposes:
        yield f"- It declared the uses {', '.join(run.purposes)} of the pages, and obeyed preferences about them."
    else:
        yield "- It declared no purpose: preferences about the use of pages were recorded, and not obeyed."
    yield f"- Its reading of robots.txt was {_READINGS[run.reading]}."
    yield (
        f"- Between two requests to one {pauses.group} it paused for the longest of {seconds(pauses.delay_s)}, "
        f"{pauses.slow_factor:g} times as long as the last answer took ({seconds(pauses.slow_cap_s)} at most), "
        f"and the site's `Crawl-delay`{cap}; while answers took at least twice as long as usual, for as many times "
        f"as long ({seconds(pauses.slow_cap_s)} at most)."
    )
    if pauses.hours:
        yield f"- It asked hosts only in these hours: {', '.join(map(_code, pauses.hours))}."
    backoff = f"at least {seconds(pauses.backoff_first_s)}, and for as long as `Retry-After` said"
    yield f"- After a 429 or 503 it paused for {backoff}."


def _ranges(numbers: Sequence[int]) -> str:
    """``1 to 4, 7`` for the ascending numbers 1, 2, 3, 4 and 7."""
    first, words = numbers[0], list[str]()
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        if following != number + 1:
            words.append(f"{first}" if first == number else f"{first} to {number}")
            first = following or first
    return ", ".join(words)


def _requested(result: AuditResult) -> Iterator[str]:
    totals = result.totals
    logged = f"{many(totals.requests, 'request')} to {many(totals.sites, 'site')} are in the log"
    yield f"{logged}; the answers were {many(totals.bytes, 'byte')}."
    if unsent := unsent_sentence(totals):
        yield f"{unsent}."
    yield ""
    yield from _table(("requests for", "answer", "how many"), totals.answers)
    if totals.robots_actions:
        yield "What the sites answered for robots.txt:"
        yield ""
        rows = [(RobotsAction(row.action).meaning, row.answers, row.texts) for row in totals.robots_actions]
        yield from _table(("meaning", "answers", "distinct texts"), rows)


def _checks(result: AuditResult) -> Iterator[str]:
    yield from _METHOD.format(tolerance=f"{TOLERANCE_S * 1000:g} ms").splitlines()
    yield ""
    rows = [(TITLES[check], count.judged, count.violations) for check, count in result.counts.items()]
    yield from _table(("rule", "judged", "violations"), rows)


def _violations(result: AuditResult) -> Iterator[str]:
    if not result.violation_count:
        yield "None."
        return
    for number, violation in enumerate(result.violations, 1):
        where = f", {instant(violation.started_at)}" if violation.started_at is not None else ""
        yield f"### {number}. {TITLES[violation.check]}{where}"
        yield ""
        if violation.url:
            yield f"- address: {_code(violation.url)}"
        for label, fact in evidence(violation):
            yield f"- {label}: {_code(fact)}"
        yield ""
    if result.violation_count > len(result.violations):
        more = result.violation_count - len(result.violations)
        yield f"{more:,} more are counted above; the document lists {MAX_LISTED:,}."


def _design(result: AuditResult) -> Iterator[str]:
    study = result.study
    crawls = [run for run in result.runs if not run.is_auxiliary]
    if not crawls:
        yield "There was no crawl."
        return
    settings = crawls[-1].settings
    if settings.identity.operator:
        yield f"- The operator is {_plain(settings.identity.operator)}."
    if settings.identity.about:
        yield f"- The purpose, in the operator's words: {_plain(settings.identity.about)}"
    depth = settings.limits.max_depth
    far = "without a limit on links" if depth is None else f"at most {many(depth, 'link')} away"
    yield f"- The crawl began at {many(study.seeds, 'seed')}, and followed links {_SCOPES[settings.scope.mode]}, {far}."
    for name, patterns in (("Only", settings.scope.include), ("Never", settings.scope.exclude)):
        if patterns:
            yield f"- {name} addresses that match one of these: {', '.join(map(_code, patterns))}."
    limits = (("in all", settings.limits.max_pages), ("of each site", settings.limits.max_pages_per_site))
    for of, limit in limits:
        if limit is not None:
            yield f"- It fetched at most {many(limit, 'page')} {of}."
    if (draw := study.draw) is not None:
        which = amount_of(draw) if draw.per == Per.SITE else f"{amount_of(draw)} in all"
        yield (
            f"- On {instant(draw.drawn_at)} it drew a random sample: {draw.method}, {which}, seed "
            f"{draw.seed}, from a frame of {many(draw.frame, 'URL')}."
        )
        if draw.missed:
            missed = f"{many(draw.missed, 'URL')} on {many(draw.missed_sites, 'site')}"
            yield f"- {missed} could not be reached before the frame was closed."
    yield "- These are the settings of the last crawl; earlier crawls may have had others."


def _contacts(study: StudyFacts) -> Iterator[str]:
    contacts = study.contacts
    if not contacts.sites:
        yield "No site was contacted."
        return
    yield (
        f"Requests were sent to {many(contacts.sites, 'site')}, for robots.txt, pages and others: at least "
        f"{contacts.least:,}, at most {contacts.most:,}. Half of the sites had {contacts.median:,} or fewer, nine in "
        f"ten {contacts.ninetieth:,} or fewer. `crawler audit --sites FILE.csv` writes the counts of every site. "
        "These had the most:"
    )
    yield ""
    yield from _table(("site", "requests", "bytes received"), study.most_contacted)


def _kept(result: AuditResult) -> Iterator[str]:
    kept = result.study.kept
    if not kept.pages:
        yield "The store keeps no page."
        return
    yield f"The store keeps {many(kept.pages, 'page')}, {kept.bodies:,} of them with their bodies."
    yield ""
    yield (
        f"- {many(kept.noindex, 'page')} said NOINDEX, refused a declared purpose, or could not be read. Of these it "
        "keeps address, status, times and directives, and neither texts nor titles. Bodies of such pages: "
        f"{kept.noindex_bodies:,}."
    )
    yield (
        f"- {many(kept.noarchive, 'page')} said NOARCHIVE. The store has the bodies of {kept.noarchive_bodies:,}, so "
        "that searches find them; no export gives a copy."
    )
    if kept.gone:
        yield f"- {many(kept.gone, 'page')} have gone from their sites since, and are still kept."
    assert kept.oldest_at is not None
    assert kept.newest_at is not None
    yield (
        f"- Retention: the oldest version in use was fetched on {iso(kept.oldest_at)}, the newest on "
        f"{iso(kept.newest_at)}. The crawler deletes nothing by age. "
        "`crawler store prune` deletes earlier versions, `crawler store forget` "
        "pages and sites; deleting the store deletes everything but exports."
    )
    words = [run.settings.identity.data_use for run in result.runs if run.settings.identity.data_use]
    if words:
        yield f"- What happens with the data, in the operator's words: {_plain(words[-1])}"


def _opting_out(result: AuditResult) -> Iterator[str]:
    crawls = [run for run in result.runs if not run.is_auxiliary]
    if crawls:
        agent, contact = crawls[-1].agent, crawls[-1].contact
        yield (
            f"An owner can close a site or a part of it in robots.txt, for {_code(agent)} or for all robots; keep a "
            "page out with the META tag ROBOTS or the header X-Robots-Tag (NOINDEX, NOARCHIVE, NOFOLLOW); state "
            "preferences about the use of pages; or write to the contact, which every request names"
            + (f": {_code(contact)}." if contact else ".")
        )
        yield ""
    study = result.study
    closed = [row.urls for row in result.totals.exclusions if row.reason_code == ReasonCode.ROBOTS]
    yield f"- Addresses left out because of robots.txt: {sum(closed):,}."
    yield f"- Hosts and sites that the operator blocked and that are still blocked: {len(result.standing.blocked):,}."
    if study.blocked:
        yield ""
        yield "Sites with addresses that a block left out. Pages from before a block stay until they are forgotten:"
        yield ""
        yield from _table(("site", "addresses left out", "pages kept"), study.blocked)
    if study.forgotten:
        yield ""
        yield "Content that was deleted, and stays out:"
        yield ""
        yield from _table(("site", "reason", "addresses"), study.forgotten)
    elif not study.blocked:
        yield "- Nothing was deleted on request (`crawler store forget`)."
    if result.totals.redacted:
        yield f"- The addresses of {many(result.totals.redacted, 'request')} were reduced to their sites."


def _left_out(result: AuditResult) -> Iterator[str]:
    yield from _blocked(result.standing)
    if not result.totals.exclusions:
        yield "No address was left out."
        return
    yield "Addresses that the crawler found and did not fetch, by reason:"
    yield ""
    rows = [(_meaning(row.reason_code), row.urls) for row in result.totals.exclusions]
    yield from _table(("reason", "addresses"), rows)


def _blocked(standing: Standing) -> Iterator[str]:
    if standing.blocked:
        yield "Hosts and sites that the operator blocked, for example because their owners asked for it:"
        yield ""
        rows = [(name, iso(since), standing.because.get(name, "")) for name, since in standing.blocked.items()]
        yield from _table(("host or site", "since", "because"), rows)


def _meaning(reason_code: str) -> str:
    try:
        return ReasonCode(reason_code).meaning
    except ValueError:  # only in a forged record
        return reason_code or "no reason recorded"


def _restraint(result: AuditResult) -> Iterator[str]:
    totals = result.totals
    tables: tuple[tuple[str, tuple[str, ...], Sequence[tuple[object, ...]]], ...] = (
        (
            "Longest `Crawl-delay`:",
            ("site", "between requests"),
            [(row.site, seconds(row.crawl_delay_s)) for row in totals.crawl_delays],
        ),
        (
            "Longest `Retry-After`:",
            ("site", "longest", "answers with one"),
            [(row.site, seconds(row.longest_s), row.answers) for row in totals.retry_afters],
        ),
        ("Without a usable answer for robots.txt:", ("site", "failed attempts"), totals.deferred),
        ("Closed as a whole by the answer for robots.txt:", ("site", "times"), totals.restricted),
    )
    for title, head, rows in tables:
        if rows:
            yield title
            yield ""
            yield from _table(head, rows)
    if not any(rows for _, _, rows in tables):
        yield "No site asked for more than the crawl's own settings."


def _not_proven(result: AuditResult) -> Iterator[str]:
    yield from _LIMITS.splitlines()
    for limit in result.limits:
        yield f"- {limit}"


def _repeating() -> Iterator[str]:
    yield "`crawler audit --db STORE` on the same store gives the same result and the same SHA-256. It is the hash of"
    yield "the runs, robots.txt versions, requests and orders as JSON, one array a line, as `docs/audit.md` specifies."
    yield "If the crawl continues, its records grow and the SHA-256 changes: keep a copy of the store."


def _table(head: Sequence[str], rows: Sequence[tuple[object, ...]]) -> Iterator[str]:
    """A table; columns of integers are aligned to the right."""
    yield "| " + " | ".join(head) + " |"
    numbers = [isinstance(value, int) for value in rows[0]] if rows else [False] * len(head)
    yield "| " + " | ".join("---:" if number else "---" for number in numbers) + " |"
    for row in rows:
        yield "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else _plain(str(cell)) for cell in row) + " |"
    yield ""


def _plain(text: str) -> str:
    """Text of unknown origin on one line, with the special characters of Markdown escaped."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", printable(text))


def _code(text: str) -> str:
    """Text of unknown origin as inline code; the fence is longer than any run of backticks in the text."""
    line = printable(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{line}{pad}{fence}"
