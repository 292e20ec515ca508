"""Every code has a sentence and a meaning, is stored as it is, and is shown wherever outcomes are shown."""

from __future__ import annotations

import ast
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

import crawler
from crawler.audit import totals
from crawler.dashboard.metrics import _reasons as metric_samples
from crawler.errors import CrawlerError
from crawler.fetch.address_guard import refusal
from crawler.frontier.decide import failure_code
from crawler.frontier.offers import LIFTED_BY_BETTER_OFFER
from crawler.inspect.status import reasons as reasons_of_status
from crawler.model import Failed, State
from crawler.reasons import (
    Code,
    EndCode,
    ErrorKind,
    MailCode,
    MailVerdict,
    Reason,
    ReasonCode,
    RequestError,
    RunEnd,
    ServerState,
    StoredReason,
    WaitCode,
    WaitReason,
)
from crawler.settings.keys import DECIDED_BY, KEYS, terminal_name
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore
from tests.listing import require_none

STATEMENTS = [path for path in Path(crawler.__file__).parent.rglob("*") if path.suffix in (".py", ".sql")]
#: Modules whose sentences the store keeps, for every front end.
FOLDERS = ("engine", "fetch", "frontier", "page", "robots", "sitemaps", "sql")
SENTENCES = "(reason|error|ended_by|verdict|waits_for)"
CODES: list[Code] = [*ReasonCode, *ErrorKind, *EndCode, *WaitCode, *ServerState, *MailCode]


def test_a_code_has_a_plain_name_a_sentence_and_a_meaning() -> None:
    rules: dict[str, Callable[[Code], bool]] = {
        "its value is a plain name": lambda code: bool(re.fullmatch(r"[a-z_]+", code.value)),
        "it is the only one with its value": lambda code: type(code)(code.value) is code,
        "it passes from process to process": lambda code: pickle.loads(pickle.dumps(code)) is code,
        "its sentence has at most one detail": lambda code: code.sentence.count("{}") <= 1,
        "no brace is left": lambda code: "{" not in code.meaning + code.render(""),
        "its settings exist": lambda code: set(code.settings) <= set(KEYS),
        "it has a meaning": lambda code: bool(code.meaning),
        "the detail is in its sentence": lambda code: (
            code.render("the detail").count("the detail") == code.sentence.count("{}")
        ),
    }
    require_none(
        f"{type(code).__name__}.{code.name}: not so: {rule}"
        for code in CODES
        for rule, holds in rules.items()
        if not holds(code)
    )


def test_each_front_end_has_its_own_name_for_a_setting() -> None:
    end = RunEnd(EndCode.MAX_PAGES, "3")
    assert end.sentence == "limits.max_pages reached (3)"
    assert end.message(terminal_name) == end.code.message(end.sentence, terminal_name) == "--max-pages reached (3)"


def test_each_front_end_has_its_own_name_for_a_setting_in_a_detail() -> None:
    refused = refusal("10.0.0.1", allow_private=False, loopback_only=False) or ""
    error, reason = RequestError(ErrorKind.ADDRESS, refused), Reason(ReasonCode.ADDRESS, refused)
    end = RunEnd(EndCode.SEEDS_LEFT_OUT, reason.sentence)
    assert error.sentence == "10.0.0.1 is a private address; fetch.allow_private permits it"
    assert str(CrawlerError("http://a.test/: ", *error.parts)) == f"http://a.test/: {error}"
    for told in (
        error.kind.message(error.sentence, terminal_name),
        reason.code.message(reason.sentence, terminal_name),
        end.message(terminal_name),
        CrawlerError(*error.parts).message(terminal_name),
    ):
        assert told.endswith("10.0.0.1 is a private address; --allow-private permits it")


def test_no_rule_names_an_option_of_the_command_line() -> None:
    rules = [path for path in STATEMENTS if path.parent.name in FOLDERS and path.suffix == ".py"]
    assert len(rules) > 100
    require_none(f"{path}:{line}: {text}" for path in rules for line, text in _options_in(path.read_text()))


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("x = 'raise --max-pages'", [1]),
        ("def f():\n    'Raise --max-pages.'\n    return f'--{x} or --depth'", [3]),
        ("x = 'a--b'", []),
        ("x: int = setting('pages', 1, N, 'See --pages.', option='--pages')", [1]),
    ],
)
def test_an_option_of_the_command_line_is_recognised(source: str, lines: list[int]) -> None:
    assert [line for line, _ in _options_in(source)] == lines


def _options_in(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each string that names an option, without docstrings and the options of settings."""
    tree = ast.parse(source)
    exempt = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    exempt |= {node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "option"}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in exempt
        if is_text and re.search(r"(?<!\w)--[a-z]", node.value):
            yield node.lineno, node.value


@pytest.mark.parametrize("kind", [Reason, RequestError, RunEnd, WaitReason, MailVerdict])
def test_an_outcome_is_rendered_from_its_code_and_detail(
    kind: type[Reason] | type[RequestError] | type[RunEnd] | type[WaitReason] | type[MailVerdict],
) -> None:
    codes: dict[type, type[Code]] = {
        Reason: ReasonCode,
        RequestError: ErrorKind,
        RunEnd: EndCode,
        WaitReason: WaitCode,
        MailVerdict: MailCode,
    }
    for code in codes[kind]:
        outcome = kind(code, "the detail")  # type: ignore[arg-type]  # each kind with its own codes
        assert outcome.sentence == str(outcome) == code.render("the detail")


def test_a_reason_from_the_store_keeps_its_sentence() -> None:
    assert StoredReason(ReasonCode.SCOPE, "scope: elsewhere").sentence == "scope: elsewhere"


def test_the_view_of_sites_has_the_sentence_of_a_wait_for_robots() -> None:
    """A view cannot call :mod:`crawler.reasons`, so it repeats these two sentences."""
    views = (Path(crawler.__file__).parent / "store" / "sql" / "views.sql").read_text()
    assert WaitCode.ROBOTS.value == "robots"
    assert WaitCode.WALL.value == "wall"
    assert views.count("THEN 'wall' ELSE 'robots' END AS wait_code") == 1
    assert views.count(f"THEN '{WaitCode.WALL.sentence}'") == 1
    assert views.count(f"ELSE '{WaitCode.ROBOTS.render('')}' || coalesce(nullif(r.note, ''), r.status) END") == 1


def test_the_end_of_a_run_passes_from_process_to_process() -> None:
    for code in EndCode:
        assert RunEnd.from_json(RunEnd(code, "detail").as_json()) == RunEnd(code, "detail")


@pytest.mark.parametrize("status", [None, 200, 304, 404, 410, 451, 503, 999])
def test_every_failed_request_has_a_reason(status: int | None) -> None:
    failed = [Failed("http://a.test/", 0.0, 1.0, kind=kind, status=status) for kind in ErrorKind]
    assert {failure_code(each) for each in failed} <= set(ReasonCode)


async def test_every_reason_is_shown_by_status_metrics_and_audit(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "crawl.db")
    try:
        await store.start_run({}, 1000.0)
        urls = {f"http://a.test/{code}": Reason(code, "detail") for code in ReasonCode}
        await store.add_seeds(list(urls.items()))
        rows = await store.query("SELECT url, reason_code, reason FROM urls")
        assert {row["url"]: (row["reason_code"], row["reason"]) for row in rows} == {
            url: (reason.code.value, reason.sentence) for url, reason in urls.items()
        }
        counted = await reasons_of_status(store, State.EXCLUDED)
        assert dict(counted) == dict.fromkeys(ReasonCode, 1)
        assert [labels["reason"] for labels, _ in metric_samples(counted)] == sorted(ReasonCode)
        log = await totals.read_totals(store)
        assert {row.reason_code: row.urls for row in log.exclusions} == dict.fromkeys(ReasonCode, 1)
    finally:
        await store.close()


NOT_REFUSED = [
    "new",
    "requeued",
    "retry",
    "revisit_due",
    "revisit_hinted",
    "revisit_whole",
    "not_a_sitemap",
    "fetched",
    "noindex",
    "withheld",
    "sitemap",
    "rupinfo",
    "changed",
    "markup_changed",
    "unchanged",
    "unreached",
    "refresh",
    "unread",
    "not_kept",
    "redirect",
]
FAILED_FOR_GOOD = [
    "not_found",
    "gone",
    "client_error",
    "wall",
    "payment_required",
    "server_error",
    "no_document",
    "no_address",
    "look_up_failed",
    "look_up_timeout",
    "no_connection",
    "tls",
    "timeout",
    "truncated",
    "protocol",
    "encoding",
    "bad_redirect",
    "redirect_circle",
    "fault",
]
#: The codes that no setting decides: a URL keeps its state when settings change.
NO_SETTING_DECIDES = {*NOT_REFUSED, *FAILED_FOR_GOOD, "nofollow", "blocked", "forgotten", "no_sitemap", "no_rupinfo"}
NO_SETTING_DECIDES |= {"refused_at_the_edge"}  # by the site
NO_SETTING_DECIDES |= {"not_followed", "port"}  # by a function of the caller, and by the URL itself
NO_SETTING_DECIDES |= {"other_bucket"}  # by a setting that never changes
NO_SETTING_DECIDES.add("other_address")  # another address has been tried since
#: The codes of exclusions and failures that stand whatever other page offers the URL.
NO_OFFER_LIFTS = {
    *FAILED_FOR_GOOD,
    *("other_bucket", "port", "refused_at_the_edge"),
    *("robots", "preference", "robots_given_up", "mirror", "mirror_cycle", "forgotten", "frame"),
    *("type", "address", "certificate", "no_name", "too_large", "no_sitemap", "no_rupinfo"),
}


def test_the_settings_that_decide_a_reason_are_named() -> None:
    """A code in neither place would stay in the store after the setting that led to it has changed."""
    named = Counter([*DECIDED_BY, *NO_SETTING_DECIDES])
    require_none(f"{code}: name it in exactly one of the two" for code in ReasonCode if named[code] != 1)


def test_each_refusal_is_lifted_by_a_better_offer_or_named_here() -> None:
    named = Counter([*LIFTED_BY_BETTER_OFFER, *NO_OFFER_LIFTS, *NOT_REFUSED])
    require_none(f"{code}: name it in exactly one of the three" for code in ReasonCode if named[code] != 1)


def test_each_key_that_decides_a_reason_is_a_setting() -> None:
    settings = asdict(Settings())
    for key in {key for keys in DECIDED_BY.values() for key in keys}:
        section, _, field = key.partition(".")
        assert section in settings, key
        assert not field or field in settings[section], key


def test_no_statement_recognises_a_sentence_and_every_code_in_sql_exists() -> None:
    assert len(STATEMENTS) > 200
    require_none(f"{path}: {wrong}" for path in STATEMENTS for wrong in _wrong_in(path.read_text()))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("WHERE reason LIKE 'scope%'", ["reason LIKE"]),
        ("WHERE instr(u.error, 'x')", ["instr(u.error"]),
        ("if row.ended_by.startswith(", ["ended_by.startswith("]),
        ("WHERE reason_code IN ('scope', 'scoop')", ["'scoop'"]),
        ("WHERE reason_code = 'scope' AND u.note LIKE 'x'", []),
    ],
)
def test_a_recognised_sentence_and_an_unknown_code_are_found(text: str, wrong: list[str]) -> None:
    assert list(_wrong_in(text)) == wrong


def _wrong_in(text: str) -> Iterator[str]:
    """The places of a source that recognise a sentence, and the codes in its SQL that do not exist."""
    for pattern in (
        rf"\b{SENTENCES}\s+(LIKE|GLOB|SIMILAR)\b",
        rf"\b(substr|instr|split_part|starts_with)\((\w+\.)?{SENTENCES}\b",
        rf"\b{SENTENCES}\.(startswith|partition|removeprefix)\(",
    ):
        yield from (found.group() for found in re.finditer(pattern, text))
    for group in re.findall(r"reason_code (?:=|IN|<>) \(?((?:'\w+'(?:, )?)+)", text):
        yield from (code for code in re.findall(r"'\w+'", group) if code.strip("'") not in set(ReasonCode))
