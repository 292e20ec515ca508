"""The audit as a document that a researcher can hand to an ethics board. Markdown, for it reads well as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from crawler.atomic_files import AtomicFiles
from crawler.audit.evidence import evidence
from crawler.audit.records import TITLES, TOLERANCE_S, RunRecord
from crawler.audit.run_audit import LISTED, AuditResult
from crawler.clock import iso
from crawler.formatting import instant, many, seconds
from crawler.model import Reading
from crawler.terminal_text import printable
from crawler.version import VERSION

_READINGS = {
    Reading.STRICT: "strict: a page was fetched only if both the 1996 draft and RFC 9309 allow it",
    Reading.DRAFT1996: "draft1996: as the Internet-Draft of 1996 reads it",
    Reading.RFC9309: "rfc9309: as RFC 9309 reads it",
}

_MEANINGS = {
    "parse": "a file, which was obeyed",
    "free": "no file: nothing is closed",
    "restricted": "access denied: the whole site is closed",
    "defer": "no usable answer: nothing was fetched until there was one",
    "given_up": "no usable answer for so long that the site was given up",
    "unreachable": "an address that this crawler does not connect to",
}

_REASONS = {
    "robots": "closed by robots.txt",
    "scope": "outside the crawl's scope",
    "contact": "off loopback, with no --contact given",
    "depth": "too many links away from the seeds",
    "mirror": "on a mirror: asked of its main site instead, or out of scope",
    "type": "not of a content type that was wanted",
    "address": "at an address that this crawler does not connect to",
    "nofollow": "linked to only with rel=nofollow",
    "redirects": "behind too many redirects",
}

_METHOD = """\
The audit does not rely on what the crawler concluded while it ran. It takes the log of every request (address, purpose,
start, end, status, `Retry-After`), every answer for robots.txt with the headers that say how long it holds and whether
it is whole, and the settings of each run; and from these it judges each request anew, in the order of time, site by
site:

- each robots.txt version is checked against its SHA-256, parsed again, and asked again about each address fetched while
  it was in force, as the robot and in the reading of that run. An answer that is no file counts as the protocol has
  it: 401 and 403 close the site (unless RFC 9309 alone is followed), other errors of the 4xx kind leave it open, and a
  server in trouble (5xx, 429, no answer) closes it until it answers again;
- until when a version held is reckoned from the headers that it came with, as HTTP has it; what the crawl recorded as
  its end is not believed. What was found behind a redirect counts for the site first asked, and every step on the way
  must be where the one before it led;
- the pause before a request is reckoned from the end of the request before it in the same politeness group. It is the
  longest of: the run's delay; a multiple of the time that the last answer took, up to a limit; and the `Crawl-delay` of
  the site's robots.txt;
- after a 429, a 503, or any error with a `Retry-After`, the group must have been left alone for as long as was asked,
  uncut;
- no request of a crawl may have begun on a site after the crawl had heeded that its operator blocked it, nor half a
  second after the operator had asked for a pause;
- request numbers must run without a gap from 1, and each run must have as many requests as its processes counted when
  they logged them, so that none can have been taken out of the log, at its end either, without changing the counts too.

Times are compared with a tolerance of {tolerance}."""

_LIMITS = """\
- The log is written by the crawler itself. It proves that the crawler kept the rules if the log is what happened; a
  server's own access log is the independent witness, and times and addresses here can be compared with it.
- Requests that were under way when the process was killed (`kill -9`, loss of power), or answered in the half second
  before, are not in the log. The pause of their groups was begun again afterwards.
- Times are those of the crawling machine. Within a run they follow a clock that cannot step; between runs they follow
  the system's clock.
- A request for robots.txt follows redirects (RFC 9309, 2.3.1.2); the rules of the site it leads to are not asked."""


def write_report(path: Path, found: AuditResult) -> None:
    """Write the document, whole or not at all. Raises :class:`UsageError` where it cannot be written."""
    with AtomicFiles() as files:
        file = files.open(path).file
        file.writelines(f"{line}\n".encode(errors="backslashreplace") for line in document(found))


def document(found: AuditResult) -> Iterator[str]:
    """The document's lines; of several empty ones, the first is enough."""
    before = ""
    for line in _parts(found):
        if line or before:
            yield line
        before = line


def _parts(found: AuditResult) -> Iterator[str]:
    history = found.history
    yield "# AuditResult of a web crawl"
    yield ""
    yield f"Made on {iso(found.at)} by `crawler audit` {VERSION}. All times are UTC."
    yield f"SHA-256 of the records that were judged: `{found.sha256}`"
    yield ""
    yield from _section("Result", _result(found))
    yield from _section("Who crawled, when, and under which rules", _runs(found.runs, history.per_run))
    yield from _section("What was asked for", _asked(found))
    yield from _section("What was obeyed, and how it was checked", _checks(found))
    yield from _section("Violations", _violations(found))
    yield from _section("What was left out, and why", _left_out(found))
    yield from _section("Sites that asked for most restraint", _restraint(found))
    yield from _section("What this does not prove", _not_proven(found))
    yield from _section("Checking it again", _again(found))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield from lines
    yield ""


def _result(found: AuditResult) -> Iterator[str]:
    history = found.history
    if not history.requests:
        yield "The log is empty: no request was ever sent, and there is nothing to judge."
        return
    span = f"{many(history.requests, 'request')} to {many(history.sites, 'site')}"
    if history.first_at is not None and history.last_at is not None:
        span += f", from {iso(history.first_at)} to {iso(history.last_at)}"
    if found.broken:
        yield f"**{many(found.broken, 'violation')} found** in {span}, told below."
    else:
        yield f"**No violation was found** in {span}."
    unproven = sum(tally.unproven for tally in found.tally.values())
    if unproven:
        yield f"{many(unproven, 'time')} the records do not suffice to judge; the table of checks counts them."


def _runs(runs: Sequence[RunRecord], requests: dict[int, int]) -> Iterator[str]:
    for run in runs:
        end = f"to {iso(run.finished_at)}" if run.finished_at is not None else "with no recorded end"
        ended = f" ({_plain(run.ended_by)})" if run.ended_by else ""
        cap = "" if run.crawl_delay_cap_s is None else f", but {seconds(run.crawl_delay_cap_s)} at most"
        yield f"**Run {run.run}**, from {iso(run.started_at)} {end}{ended}: {many(requests.get(run.run, 0), 'request')}"
        yield ""
        whom = "" if run.contact else " and named no contact, which is for loopback alone"
        yield f"- It called itself {_code(run.user_agent)}{whom}; in robots.txt it looked for {_code(run.agent)}."
        yield f"- It read robots.txt in the reading {_READINGS[run.reading]}."
        yield (
            f"- Between two requests to one {run.group} it paused for the longest of {seconds(run.delay_s)}, "
            f"{run.slow_factor:g} times as long as the last answer took ({seconds(run.slow_cap_s)} at most), "
            f"and the site's `Crawl-delay`{cap}."
        )
        yield f"- After a 429 or 503 it paused for {seconds(run.backoff_first_s)} at least, and as `Retry-After` asked."
        yield ""
    if not runs:
        yield "There was no run."


def _asked(found: AuditResult) -> Iterator[str]:
    history = found.history
    received = f"received {many(history.requests, 'request')}, and sent {many(history.bytes, 'byte')}"
    yield f"{many(history.sites, 'site')} {received}."
    yield ""
    yield from _table(("requests for", "answer", "how many"), history.answers)
    if history.versions:
        yield "What the sites answered for robots.txt:"
        yield ""
        rows = [(_MEANINGS.get(action, action), n, texts) for action, n, texts in history.versions]
        yield from _table(("meaning", "answers", "distinct texts"), rows)


def _checks(found: AuditResult) -> Iterator[str]:
    yield from _METHOD.format(tolerance=f"{TOLERANCE_S * 1000:g} ms").splitlines()
    yield ""
    rows = [(TITLES[check], tally.judged, tally.violations, tally.unproven) for check, tally in found.tally.items()]
    yield from _table(("rule", "judged", "violations", "unproven"), rows)


def _violations(found: AuditResult) -> Iterator[str]:
    if not found.broken:
        yield "None."
        return
    for number, violation in enumerate(found.violations, 1):
        where = f", {instant(violation.started_at)}" if violation.started_at is not None else ""
        yield f"### {number}. {TITLES[violation.check]}{where}"
        yield ""
        if violation.url:
            yield f"- address: {_code(violation.url)}"
        for label, fact in evidence(violation):
            yield f"- {label}: {_code(fact)}"
        yield ""
    if found.broken > len(found.violations):
        yield f"{found.broken - len(found.violations):,} more are counted above; {LISTED:,} are listed."


def _left_out(found: AuditResult) -> Iterator[str]:
    if not found.history.excluded:
        yield "No address was left out."
        return
    yield "Addresses that the crawler met and did not fetch, by reason:"
    yield ""
    yield from _table(("reason", "addresses"), [(_REASONS.get(why, why), n) for why, n in found.history.excluded])


def _restraint(found: AuditResult) -> Iterator[str]:
    history = found.history
    tables: tuple[tuple[str, tuple[str, ...], Sequence[tuple[object, ...]]], ...] = (
        (
            "Longest `Crawl-delay`:",
            ("site", "between requests"),
            [(site, seconds(delay_s)) for site, delay_s in history.crawl_delays],
        ),
        (
            "Longest `Retry-After`:",
            ("site", "longest", "answers with one"),
            [(site, seconds(longest_s), n) for site, longest_s, n in history.retry_afters],
        ),
        ("Waited for because robots.txt could not be had:", ("site", "attempts in vain"), history.deferred),
        ("Closed as a whole by their answer for robots.txt:", ("site", "times"), history.restricted),
    )
    for title, head, rows in tables:
        if rows:
            yield title
            yield ""
            yield from _table(head, rows)
    if not any(rows for _, _, rows in tables):
        yield "No site asked for more than the crawl's own settings."


def _not_proven(found: AuditResult) -> Iterator[str]:
    yield from _LIMITS.splitlines()
    for limit in found.limits:
        yield f"- {limit}"


def _again(found: AuditResult) -> Iterator[str]:
    yield "`crawler audit --db STORE` on the same store gives the same result and the same SHA-256. That is the hash"
    yield "of its runs, robots.txt versions and requests as JSON, one array a line, as `docs/audit.md` shows."
    yield "If the crawl goes on afterwards, its records grow, and their SHA-256 changes: keep a copy of the store."


def _table(head: Sequence[str], rows: Sequence[tuple[object, ...]]) -> Iterator[str]:
    """Names to the left, numbers to the right."""
    yield "| " + " | ".join(head) + " |"
    numbers = [isinstance(value, int) for value in rows[0]] if rows else [False] * len(head)
    yield "| " + " | ".join("---:" if number else "---" for number in numbers) + " |"
    for row in rows:
        yield "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else _plain(str(cell)) for cell in row) + " |"
    yield ""


def _plain(text: str) -> str:
    """A stranger's text on one line, with nothing in it that Markdown reads as its own."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", printable(text))


def _code(text: str) -> str:
    """A stranger's text as it is, on one line; the fence is longer than any run of backticks in it."""
    line = printable(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{line}{pad}{fence}"
