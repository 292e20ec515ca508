"""The parts of the report about the crawl as a whole, each made of the facts alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from crawler.audit.evidence import evidence, many
from crawler.audit.records import TITLES
from crawler.audit.run_audit import AuditResult
from crawler.model import State
from crawler.report.blocks import Cell, badge, barred, card, cards, counted, left_out_note, number, plain, table
from crawler.report.charts import Column, Series, columns, histogram, percent, stacked_bar
from crawler.report.facts import Facts, Reason, Run, Slot, Spread
from crawler.report.markup import Child, Node, el, short
from crawler.report.words import ANSWER_SERIES, REASONS, STATES, moment, rules, span, time_label, volume

_VIOLATIONS_SHOWN = 20
_RUNS_SHOWN = 50


def overview(facts: Facts) -> list[Node]:
    """The crawl in a few figures."""
    history, states = facts.history, facts.counts.states
    tiles = [
        (f"{facts.counts.pages:,}", "pages fetched"),
        (f"{facts.graph.fetched_sites:,}", "sites with pages"),
        (f"{sum(states.values()):,}", "URLs met"),
        (f"{facts.counts.links:,}", "links"),
        (f"{history.requests:,}", "requests"),
        (volume(history.bytes), "received"),
        (span(facts.timeline.active_s), "of crawling"),
    ]
    share = stacked_bar([(STATES[state], states[state]) for state in STATES], "URLs by state")
    return [
        el("div", *(el("div", el("b", n), el("span", what), class_="tile") for n, what in tiles), class_="tiles"),
        card(el("h3", "What became of the URLs"), share),
    ]


def verdict(audit: AuditResult | str) -> Node:
    """One sentence: whether the request log proves that the rules were kept."""
    if isinstance(audit, str):
        return el("div", el("b", "The log could not be judged. "), audit, class_="verdict mild")
    judged = f"{many(audit.history.requests, 'request')} to {many(audit.history.sites, 'site')}"
    if audit.broken:
        return el(
            "div", el("b", f"{many(audit.broken, 'violation')} of politeness"), f" in {judged}.", class_="verdict bad"
        )
    if not audit.history.requests:
        return el("div", "No request was sent: there is nothing to judge.", class_="verdict mild")
    return el("div", el("b", "Polite: "), f"no rule was broken in {judged}.", class_="verdict")


def runs(facts: Facts) -> list[Node]:
    """By whom was crawled, when, from where, under which rules."""
    made: list[Child] = []
    for kept, same in groupby(facts.runs[-_RUNS_SHOWN:], key=lambda run: tuple(rules(run))):
        group = list(same)
        names = f"Run {group[0].number}" if len(group) == 1 else f"Runs {group[0].number} to {group[-1].number}"
        pairs = [part for what, how in kept for part in (el("dt", what), el("dd", short(how, 600)))]
        made.append(card(el("h3", f"{names}: the rules"), el("dl", *pairs), whole=True))
    rows = [_run_row(run, facts.history.per_run.get(run.number, 0)) for run in facts.runs[-_RUNS_SHOWN:]]
    heads = ("run", "started (UTC)", "took", "requests", "version", "ended")
    seeds = [el("li", el("span", short(seed), class_="url")) for seed in facts.first_seeds]
    if facts.seeds > len(seeds):
        seeds.append(el("li", f"… and {facts.seeds - len(seeds):,} more", class_="soft"))
    return [
        cards(
            card(el("h3", "When"), left_out_note(len(facts.runs), len(rows), "run"), table(heads, rows), whole=True),
            *made,
            card(el("h3", many(facts.seeds, "seed")), el("ul", *seeds), whole=True),
        )
    ]


def _run_row(run: Run, requests: int) -> list[Cell]:
    took = number(None) if run.finished_at is None else number(run.finished_at - run.started_at, span)
    ended = run.ended_by or "no end recorded: it runs, or was killed"
    return [
        plain(str(run.number)),
        plain(moment(run.started_at)),
        took,
        number(requests),
        plain(run.crawler_version),
        Cell(ended, ended, "wide"),
    ]


def politeness(facts: Facts) -> list[Node]:
    """The audit: every check, and the violations with their evidence."""
    audit = facts.audit
    if isinstance(audit, str):
        return [card(el("p", audit), whole=True)]
    rows = [
        [plain(TITLES[check]), number(tally.judged), _broken(tally.violations), number(tally.unproven)]
        for check, tally in audit.tally.items()
    ]
    shown = 4 if any(tally.unproven for tally in audit.tally.values()) else 3
    heads = ("rule", "judged", "violations", "unproven")
    parts: list[Child] = [table(heads[:shown], [row[:shown] for row in rows])]
    for violation in audit.violations[:_VIOLATIONS_SHOWN]:
        details = [part for what, how in evidence(violation) for part in (el("dt", what), el("dd", short(how, 300)))]
        parts += [
            el("h3", f"{TITLES[violation.check]}: broken"),
            el("p", el("span", short(violation.url or "the log"), class_="url")),
            el("dl", *details),
        ]
    if audit.broken > _VIOLATIONS_SHOWN:
        parts.append(
            el("p", f"… and {audit.broken - _VIOLATIONS_SHOWN:,} more: `crawler audit` lists them.", class_="note")
        )
    parts += [el("p", f"Not proven: {limit}", class_="note") for limit in audit.limits[:_VIOLATIONS_SHOWN]]
    parts.append(el("p", "SHA-256 of what was judged: ", el("code", audit.sha256), class_="note"))
    return [card(*parts, whole=True)]


def _broken(violations: int) -> Cell:
    return badge(f"{violations:,}", "bad" if violations else "good", value=violations)


def over_time(facts: Facts) -> list[Node]:
    """Pages and requests over time; where nothing happened for long, time is cut."""
    line = facts.timeline
    if not line.slots:
        return [card(el("p", "No request was sent."), whole=True)]
    name = f"per {span(line.width_s)}"
    pages = _time_columns(facts, lambda slot: (slot.pages,), lambda slot: many(slot.pages, "page"))
    every = -(-len(pages) // 6)  # times are long
    requests = _time_columns(facts, lambda slot: slot.requests, _answers_said)
    return [
        cards(
            card(el("h3", f"Pages {name}"), columns(pages, [Series("pages", "c2")], "Pages over time", every=every)),
            card(
                el("h3", f"Requests {name}, by answer"),
                columns(requests, ANSWER_SERIES, "Requests over time", every=every),
            ),
        )
    ]


def _answers_said(slot: Slot) -> str:
    said = [f"{n:,} × {kind.name}" for n, kind in zip(slot.requests, ANSWER_SERIES, strict=True) if n]
    return "\n".join(said)


def _time_columns(facts: Facts, values: Callable[[Slot], Sequence[float]], said: Callable[[Slot], str]) -> list[Column]:
    """A column for each slot; up to three empty ones are shown as such, more become a cut."""
    width_s, slots = facts.timeline.width_s, facts.timeline.slots
    empty = (0,) * len(values(slots[0]))
    made: list[Column] = []
    for before, slot in pairwise((None, *slots)):
        assert slot is not None
        missing = 0 if before is None else slot.number - before.number - 1
        at = slot.number * width_s
        if missing > 3:
            made.append(Column("", f"nothing for {span(missing * width_s)}", gap=True))
        else:
            made += [Column("", "nothing", empty)] * missing
        made.append(Column(time_label(at, width_s), f"{moment(at)} UTC\n{said(slot)}", values(slot)))
    return made


def depths(facts: Facts) -> Node:
    made = []
    for depth in range(max(facts.depths, default=0) + 1):
        ended = facts.depths.get(depth, {})
        said = "\n".join(f"{ended[state]:,} {state}" for state in STATES if ended.get(state))
        values = [ended.get(state, 0) for state in STATES]
        made.append(Column(str(depth), f"{many(depth, 'link')} from a seed\n{said}", values))
    chart = columns(made, list(STATES.values()), "URLs by depth and state", every=-(-len(made) // 12))
    return card(el("h3", "URLs by their distance from the seeds, in links"), chart)


def spread(title: str, spread: Spread, show: Callable[[float], str], noun: str) -> Node:
    if not spread.total:
        return card(el("h3", title), el("p", "None.", class_="soft"))
    half, most_of_them, nearly_all = spread.quantiles
    note = (
        f"half below {show(half)}, 90 % below {show(most_of_them)}, 99 % below {show(nearly_all)}; "
        f"the most is {show(spread.most)}"
    )
    chart = histogram(spread.bounds, spread.counts, show, noun, title)
    return card(el("h3", title), el("p", note, class_="note"), chart)


def pages(facts: Facts) -> list[Node]:
    """What kind of pages, how deep, how large, how fast."""
    return [
        cards(
            depths(facts),
            counted("Answers to requests for pages", "status", facts.answers, "c1"),
            spread("Page sizes", facts.sizes, volume, "pages"),
            spread("Response times", facts.answer_times, span, "answers"),
            counted("Content types of pages", "type", facts.types, "c5"),
            card(el("h3", "What pages say of themselves"), el("p", _noindex(facts))),
        )
    ]


def _noindex(facts: Facts) -> str:
    return (
        f"{facts.noindex:,} of {many(facts.counts.pages, 'page')} ask not to be indexed (NOINDEX): "
        f"their text is not kept. The pages have {volume(facts.page_bytes)} in all, unpacked."
    )


def left_out(facts: Facts) -> list[Node]:
    """Why URLs were excluded, and why they failed."""
    return [
        cards(
            _reasons(
                "Excluded: never asked for, or not kept", facts.excluded, facts.counts.states[State.EXCLUDED], "c6"
            ),
            _reasons("Failed: asked for in vain", facts.failed, facts.counts.states[State.FAILED], "c4"),
        )
    ]


def _reasons(title: str, reasons: Sequence[Reason], total: int, colour: str) -> Node:
    if not reasons:
        return card(el("h3", title), el("p", "None.", class_="soft"), whole=True)
    rows = []
    for reason in reasons:
        meaning = REASONS.get(reason.word)
        named = el("div", el("b", short(reason.word, 60)), el("div", meaning, class_="soft") if meaning else None)
        example = el("div", el("span", short(reason.example_url), class_="url"))
        if reason.example != reason.word:
            example.append(el("div", short(reason.example), class_="soft"))
        rows.append(
            [
                Cell(named, reason.word, "named"), barred(reason.urls / total, colour), number(reason.urls),
                number(reason.urls / total, percent), Cell(example, reason.example_url, "wide"),
            ]
        )  # fmt: skip
    return card(el("h3", title), table(("reason", "", "URLs", "share", "one of them"), rows), whole=True)
