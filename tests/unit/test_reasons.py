"""Every code has a sentence and a meaning, is stored as it is, and is shown wherever outcomes are shown."""

from __future__ import annotations

import ast
import pickle
import re
from dataclasses import asdict
from pathlib import Path

import pytest

import crawler
from crawler.audit import totals
from crawler.dashboard.metrics import _reasons as metric_samples
from crawler.engine.changed_options import DECIDED_BY
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
from crawler.settings.keys import KEYS, terminal_name
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore

STATEMENTS = [path for path in Path(crawler.__file__).parent.rglob("*") if path.suffix in (".py", ".sql")]
#: Modules whose sentences the store keeps, for every front end.
FOLDERS = ("engine", "fetch", "frontier", "page", "robots", "sitemaps", "sql")
RULES = [path for path in STATEMENTS if path.parent.name in FOLDERS and path.suffix == ".py"]
SENTENCES = "(reason|error|ended_by|verdict|waits_for)"
CODES: list[Code] = [*ReasonCode, *ErrorKind, *EndCode, *WaitCode, *ServerState, *MailCode]


@pytest.mark.parametrize("code", CODES, ids=lambda code: f"{type(code).__name__}.{code.name}")
def test_a_code_has_a_plain_name_a_sentence_and_a_meaning(code: Code) -> None:
    assert re.fullmatch(r"[a-z_]+", code.value)
    assert type(code)(code.value) is code
    assert pickle.loads(pickle.dumps(code)) is code
    assert code.sentence.count("{}") <= 1
    assert "{" not in code.meaning + code.render("")
    assert set(code.settings) <= set(KEYS)
    assert code.meaning
    assert code.render("the detail").count("the detail") == code.sentence.count("{}")


def test_each_front_end_has_its_own_name_for_a_setting() -> None:
    end = RunEnd(EndCode.MAX_PAGES, "3")
    assert end.sentence == "limits.max_pages reached (3)"
    assert end.told(terminal_name) == end.code.told(end.sentence, terminal_name) == "--max-pages reached (3)"


def test_each_front_end_has_its_own_name_for_a_setting_in_a_detail() -> None:
    refused = refusal("10.0.0.1", allow_private=False, loopback_only=False) or ""
    error, reason = RequestError(ErrorKind.ADDRESS, refused), Reason(ReasonCode.ADDRESS, refused)
    end = RunEnd(EndCode.SEEDS_LEFT_OUT, reason.sentence)
    assert error.sentence == "10.0.0.1 is a private address; fetch.allow_private permits it"
    assert str(CrawlerError("http://a.test/: ", *error.parts)) == f"http://a.test/: {error}"
    for told in (
        error.kind.told(error.sentence, terminal_name),
        reason.code.told(reason.sentence, terminal_name),
        end.told(terminal_name),
        CrawlerError(*error.parts).told(terminal_name),
    ):
        assert told.endswith("10.0.0.1 is a private address; --allow-private permits it")


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_no_rule_names_an_option_of_the_command_line(path: Path) -> None:
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert not [text.value for text in texts if id(text) not in docstrings and re.search(r"(?<!\w)--[a-z]", text.value)]


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
    """A view cannot call :mod:`crawler.reasons`, so it repeats this one sentence."""
    views = (Path(crawler.__file__).parent / "store" / "sql" / "views.sql").read_text()
    assert WaitCode.ROBOTS.value == "robots"
    assert views.count("THEN 'robots' ELSE") == 1
    assert views.count(f"THEN '{WaitCode.ROBOTS.render('')}' || coalesce(nullif(r.note, ''), r.status) ELSE") == 1


def test_the_end_of_a_run_passes_from_process_to_process() -> None:
    for code in EndCode:
        assert RunEnd.from_json(RunEnd(code, "detail").as_json()) == RunEnd(code, "detail")


@pytest.mark.parametrize("kind", ErrorKind)
@pytest.mark.parametrize("status", [None, 200, 304, 404, 410, 451, 503, 999])
def test_every_failed_request_has_a_reason(kind: ErrorKind, status: int | None) -> None:
    assert failure_code(Failed("http://a.test/", 0.0, 1.0, kind=kind, status=status)) in ReasonCode


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
    "worker_died",
]
#: The codes that no setting decides: a URL keeps its state when settings change.
NO_SETTING_DECIDES = {*NOT_REFUSED, *FAILED_FOR_GOOD, "nofollow", "blocked", "forgotten", "no_sitemap", "no_rupinfo"}
NO_SETTING_DECIDES.add("not_followed")  # by a function of the caller
NO_SETTING_DECIDES |= {"other_part", "robots_elsewhere"}  # by a setting that never changes
NO_SETTING_DECIDES.add("other_address")  # another address has been tried since
#: The codes of exclusions and failures that stand whatever other page offers the URL.
NO_OFFER_LIFTS = {
    *FAILED_FOR_GOOD,
    *("other_part", "robots_elsewhere"),
    *("robots", "preference", "robots_given_up", "mirror", "mirror_cycle", "forgotten", "frame"),
    *("type", "address", "certificate", "no_name", "too_large", "no_sitemap", "no_rupinfo"),
}


@pytest.mark.parametrize("code", ReasonCode)
def test_the_settings_that_decide_a_reason_are_named(code: ReasonCode) -> None:
    """A code in neither place would stay in the store after the setting that led to it has changed."""
    assert (code in DECIDED_BY) != (code.value in NO_SETTING_DECIDES), "name it in exactly one of the two"


@pytest.mark.parametrize("code", ReasonCode)
def test_each_refusal_is_lifted_by_a_better_offer_or_named_here(code: ReasonCode) -> None:
    places = [code in LIFTED_BY_BETTER_OFFER, code.value in NO_OFFER_LIFTS, code.value in NOT_REFUSED]
    assert sum(places) == 1, "name it in exactly one of the three"


def test_each_key_that_decides_a_reason_is_a_setting() -> None:
    settings = asdict(Settings())
    for key in {key for keys in DECIDED_BY.values() for key in keys}:
        section, _, field = key.partition(".")
        assert section in settings, key
        assert not field or field in settings[section], key


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.name)
def test_no_statement_recognises_a_sentence_and_every_code_in_sql_exists(path: Path) -> None:
    text = path.read_text()
    assert not re.search(rf"\b{SENTENCES}\s+(LIKE|GLOB|SIMILAR)\b", text)
    assert not re.search(rf"\b(substr|instr|split_part|starts_with)\((\w+\.)?{SENTENCES}\b", text)
    assert not re.search(rf"\b{SENTENCES}\.(startswith|partition|removeprefix)\(", text)
    for group in re.findall(r"reason_code (?:=|IN|<>) \(?((?:'\w+'(?:, )?)+)", text):
        assert {code.strip("' ") for code in group.split(",") if code.strip()} <= set(ReasonCode)
