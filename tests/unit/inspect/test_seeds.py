"""What the ledger says of a seed, and the command that mends it."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from rich.console import Console

from crawler.inspect.seeds import Ledger, Outcome, Seed, describe_outcomes, render
from crawler.inspect.unknown_hosts import nearest_host
from crawler.model import State
from crawler.reasons import ReasonCode
from crawler.store.sql.schema import schema

NOW = 1_800_000_000.0
SEED = Seed("http://a.test/x", Outcome.FETCHED, None, ReasonCode.FETCHED, "200", 3, None, None, None)


def seed(outcome: Outcome, code: ReasonCode = ReasonCode.FETCHED, **more: Any) -> Seed:
    return SEED._replace(outcome=outcome, reason_code=code, reason=code.value, **more)


@pytest.mark.parametrize(
    ("one", "remedy"),
    [
        (seed(Outcome.NO_SUCH_HOST), "control queue http://a.test/x"),
        (seed(Outcome.NO_SUCH_HOST, robots_problem="x"), "why http://a.test/x"),
        (seed(Outcome.NO_SUCH_HOST, robots_problem="x", meant=("http://b.test/x",)), "control queue http://b.test/x"),
        (seed(Outcome.NO_SUCH_HOST, meant=("http://b.test/x",), is_mended=True), None),
        (seed(Outcome.LEFT_SCOPE, leads_to="http://b.test/?a=1&b"), "control queue 'http://b.test/?a=1&b'"),
        (seed(Outcome.NOT_FOUND), "control queue http://a.test/"),
        (seed(Outcome.NOT_FOUND, url="http://a.test/"), "control queue http://a.test/"),
        (seed(Outcome.NOT_FOUND, is_mended=True), None),
        (seed(Outcome.REFUSED_ADDRESS, ReasonCode.ADDRESS), "control block http://a.test"),
        (seed(Outcome.CLOSED, leads_to="http://b.test/"), "why http://b.test/"),
        (seed(Outcome.BLOCKED), None),
        (
            seed(Outcome.SKIPPED)._replace(reason_code=None, meant=("http://a.test/", "http://b.test/?a&b")),
            "control queue http://a.test/ 'http://b.test/?a&b'",
        ),
        (seed(Outcome.SKIPPED)._replace(reason_code=None), "control queue URL"),
        (seed(Outcome.FETCHED), None),
    ],
)
def test_the_remedy_is_a_command_that_can_be_pasted(one: Seed, remedy: str | None) -> None:
    assert ledger(one).remedy(one) == (None if remedy is None else f"crawler {remedy} --db c.db")


def test_a_robots_txt_that_fails_is_an_outcome_of_its_own() -> None:
    statuses = {"503": "deferred", "wall": "walled", "dns_no_name": "no_such_host", "timeout": "silent"}
    assert {status: outcomes(State.QUEUED, status)[ReasonCode.NEW] for status in statuses} == statuses
    given_up = {"503": "bad_answer", "dns_no_name": "no_such_host", "timeout": "silent"}
    code = ReasonCode.ROBOTS_GIVEN_UP
    assert {status: outcomes(State.FAILED, status)[code] for status in given_up} == given_up
    before = {status: outcomes(State.QUEUED, status, "given_up")[ReasonCode.NEW] for status in given_up}
    assert before == given_up, "the URL was not claimed since"


def test_a_walled_seed_is_told_from_a_silent_one() -> None:
    failed = outcomes(State.FAILED)
    assert {failed[ReasonCode.WALL], failed[ReasonCode.PAYMENT_REQUIRED]} == {Outcome.WALLED}
    assert outcomes(State.EXCLUDED)[ReasonCode.REFUSED_AT_THE_EDGE] is Outcome.WALLED


def test_a_site_that_a_frame_was_closed_without_is_not_taken_for_sampled() -> None:
    seen = {"503": "deferred", "connect": "silent", "wall": "walled", None: "not_reached"}
    assert {status: outcomes(State.EXCLUDED, status)[ReasonCode.FRAME] for status in seen} == seen
    one = seed(Outcome.DEFERRED, ReasonCode.FRAME, robots_problem="503", robots_attempts=2, failing_since=0.0)
    assert one.describe(100.0) == "frame; robots.txt: 503 (2 attempts since 1970-01-01T00:00:00Z)"


def outcomes(state: State, robots_status: str | None = None, action: str = "defer") -> dict[ReasonCode, Outcome]:
    """What the view says of a seed in this state, for each reason."""
    db = sqlite3.connect(":memory:")
    db.executescript(schema("sqlite"))
    db.execute("INSERT INTO politeness_group (id, name, ready_at) VALUES (1, 'a.test', 0)")
    db.execute("INSERT INTO site (id, name, host, registered_domain, group_id) VALUES (0, 'http://a.test', '', '', 1)")
    if robots_status is not None:
        copy = "INSERT INTO robots_copy (id, site_id, action, status, fetched_at, valid_from, valid_until) VALUES "
        db.execute(f"{copy}(1, 0, ?, ?, 0, 0, 0)", [action, robots_status])
        db.execute("UPDATE site SET robots_id = 1")
    row = "INSERT INTO url (id, path, state, reason_code, depth, seed) VALUES (?, ?, ?, ?, 0, 1)"
    codes = list(ReasonCode)
    db.executemany(row, [(n, f"/{code.value}", state.value, code.value) for n, code in enumerate(codes)])
    found = dict(db.execute("SELECT url, outcome FROM seeds"))
    return {code: Outcome(found[f"http://a.test/{code.value}"]) for code in codes}


@pytest.mark.parametrize("state", State)
def test_every_reason_has_an_outcome(state: State) -> None:
    found = outcomes(state)
    fetched, queued = {Outcome.FETCHED, Outcome.NOT_KEPT}, {Outcome.WAITS, Outcome.HELD_BACK}
    if state is State.FETCHED:
        assert set(found.values()) <= fetched
    elif state is State.QUEUED:
        assert set(found.values()) <= queued
    else:
        assert [code for code, outcome in found.items() if outcome in fetched | queued] == []


def test_a_redirect_to_another_registered_domain_names_it() -> None:
    left = seed(Outcome.LEFT_SCOPE, ReasonCode.SCOPE, leads_to="http://b.test/", leads_to_domain="b.test")
    assert left.describe(NOW) == "leads to http://b.test/, of another registered domain (b.test): scope"


def test_the_times_of_a_seed_are_told() -> None:
    waits = seed(Outcome.WAITS, ReasonCode.RETRY, failing_since=NOW - 60, next_at=NOW + 60)
    assert waits.describe(NOW) == "retry, no answer since 2027-01-15T07:59:00Z, until 08:01:00Z"
    assert waits.describe(NOW + 60) == "retry, no answer since 2027-01-15T07:59:00Z"


def test_a_seed_that_is_still_tried_says_what_came_how_often_and_when_it_is_asked_again() -> None:
    refused = "no connection to a.test: Connection refused"
    tried = seed(Outcome.SILENT, robots_problem=refused, robots_attempts=3, failing_since=NOW - 60, next_at=NOW + 60)
    said = f"robots.txt: {refused} (3 attempts since 2027-01-15T07:59:00Z, next"
    assert tried.describe(NOW) == f"{said} at 08:01:00Z)"
    assert tried.describe(NOW + 60) == f"{said} now)"


def test_a_skipped_line_says_where_it_stands() -> None:
    skipped = Seed("htp:a", Outcome.SKIPPED, None, None, "no URL", 0, None, None, None, source="/list", line=7)
    assert skipped.describe(NOW) == "/list, line 7: no URL"


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("exmaple.test", "example.test"),  # two letters in each other's place
        ("exampel.test", "example.test"),
        ("eample.test", "example.test"),  # one missing
        ("exxample.test", "example.test"),  # one too many
        ("examble.test", "example.test"),  # another one
        ("site00l.test", None),  # nine are equally near
        ("wwwexample.test", None),
        ("sample.test", None),
        ("other.test", None),
        ("example.test", None),
    ],
)
def test_the_host_that_was_perhaps_meant(host: str, near: str | None) -> None:
    assert nearest_host(host, ["example.test", "shop.test", *(f"site00{n}.test" for n in range(1, 10))]) == near


def ledger(*seeds: Seed) -> Ledger:
    return Ledger(NOW, "c.db", seeds)


def test_the_end_of_a_run_names_five_seeds_and_counts_all() -> None:
    said = ledger(*[seed(Outcome.SILENT)] * 7, SEED).lines_at_end(has_causes=False)
    assert len(said) == 6
    assert said[-1] == "7 seeds need a person: `crawler seeds --db c.db` lists them with what mends each"
    assert ledger(SEED).lines_at_end(has_causes=False) == []


def test_the_end_of_a_run_counts_what_was_told_before() -> None:
    (counted,) = ledger(seed(Outcome.SKIPPED)).lines_at_end(has_causes=False)
    assert counted.startswith("1 seed needs a person"), "the run told of the line when it read the list"
    known, new = seed(Outcome.SILENT), seed(Outcome.DEFERRED, url="http://b.test/" + "x" * 8000)
    told = ledger(known).told()
    assert ledger(known).in_short(told)["first"] == []
    (line,) = ledger(known, new).in_short(told)["first"]
    assert max(len(str(value)) for value in line.values()) < 400, "a mail of them stays small"
    assert ledger(known).lines_at_end(has_causes=False, told=told) == [
        "1 seed needs a person: `crawler seeds --db c.db` lists them with what mends each"
    ]
    first, _ = ledger(known, new).lines_at_end(has_causes=False, told=told)
    assert first.startswith("seed http://b.test/xxx")
    assert "… (8,014 characters)" in first
    (changed,) = ledger(seed(Outcome.NO_SUCH_HOST)).lines_at_end(has_causes=False, told=told)
    assert "http://a.test/x" in changed


def test_a_run_that_has_told_its_causes_names_only_hosts_that_do_not_exist() -> None:
    unknown = seed(Outcome.NO_SUCH_HOST, ReasonCode.NO_NAME, meant=("http://aa.test/x",))
    (said,) = ledger(unknown).lines_at_end(has_causes=True)
    knows = "seed http://a.test/x: no_name; the crawl knows aa.test; `crawler control queue http://aa.test/x --db"
    assert said.startswith(knows)
    assert ledger(seed(Outcome.CLOSED)).lines_at_end(has_causes=True) == []


def test_the_ledger_lists_what_needs_a_person_and_counts_the_rest() -> None:
    console: Any = Console(width=60, highlight=False)
    long = "http://b.test/" + "x" * 60
    with console.capture() as shown:
        render(ledger(*[seed(Outcome.LEFT_SCOPE, leads_to=long)] * 12, SEED), console, all_seeds=False)
    lines = shown.get().splitlines()
    assert lines[0] == "13 seeds, 12 need a person"
    assert lines.count(f"    crawler control queue {long} --db c.db") == 1, "once, and not broken into lines"
    assert lines[-3:] == [
        "  1 seed, 3 pages on its site (--all lists them)",
        "",
        "To leave a site out: crawler control block SITE --db c.db",
    ]


def test_seeds_with_the_same_remedy_share_a_command() -> None:
    silent = [seed(Outcome.SILENT, url=f"http://{n}.test/") for n in range(22)]
    waits, moved = [seed(Outcome.SILENT, robots_problem="x")] * 30, [seed(Outcome.NOT_FOUND)] * 2
    (first, front), (_, commands) = ledger().by_command([*silent, *moved, *waits])
    assert (len(first), front) == (2, ["crawler control queue http://a.test/ --db c.db"])
    urls = [f"http://{n}.test/" for n in range(22)]
    assert commands == [
        f"crawler control queue {' '.join(urls[:20])} --db c.db",
        f"crawler control queue {' '.join(urls[20:])} --db c.db",
        "crawler why http://a.test/x --db c.db",
    ]


def test_a_seed_is_mended_once_what_replaces_it_is_a_seed() -> None:
    front = {"http://a.test/", "http://a.test/x"}
    assert seed(Outcome.NOT_FOUND).is_mended_by(front)
    assert not seed(Outcome.NOT_FOUND).is_mended_by({"http://a.test/x"})
    assert not seed(Outcome.SILENT).is_mended_by(front)
    assert not Seed(
        "a.test", Outcome.SKIPPED, None, None, "", 0, None, None, None, meant=("http://a.test/",)
    ).is_mended_by(front)


def test_the_counts_in_short() -> None:
    assert describe_outcomes({"no_such_host": 2, "fetched": 1_000}) == "2 no such host, 1,000 fetched"
