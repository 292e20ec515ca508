"""The commands ``crawler robots check`` and ``crawler page check``, which need neither network nor store."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import click

from crawler.cli.output import print_json, say, tell
from crawler.cli.shared import OneOf, canonical, cli, json_option
from crawler.clock import SystemClock
from crawler.engine.answers import tagged
from crawler.engine.parser_pool import BlockingReader
from crawler.engine.robots_messages import MAX_CPU_S, RobotsQuestion
from crawler.engine.robots_reading import read_robots_alone
from crawler.errors import UsageError
from crawler.model import Fetched, Headers, Preference, Reading
from crawler.page.check import check_case
from crawler.page.walls import wall_in_body, wall_in_headers
from crawler.preferences.purposes import UsePurpose, first_refusal, sentence_of
from crawler.robots.check import check_case as check_robots_case
from crawler.robots.doubts import doubts_about
from crawler.robots.readings import SiteRules
from crawler.robots.records import product_token
from crawler.robots.response import RobotsSettings
from crawler.robots.rsl import licensed_by, licensed_page
from crawler.robots.tdmrep import with_filed
from crawler.robots.text import octets_read, parse
from crawler.settings.settings import Settings
from crawler.url import split


@cli.group()
def robots() -> None:
    """Read a robots.txt, without network."""


@robots.command("check")
@click.argument("urls", nargs=-1, metavar="URL...")
@click.option("--file", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The robots.txt.")
@click.option("--agent", default=Settings().identity.agent, show_default=True, metavar="TOKEN")
@click.option("--reading", type=OneOf([r.value for r in Reading]), default="strict", show_default=True)
@click.option("--site", metavar="URL", help="The site of the robots.txt, for Host lines.  [default: that of each URL]")
@click.option("--jsonl", is_flag=True, help="Cases from standard input, one JSON object a line; answers likewise.")
@json_option
def robots_check(
    urls: tuple[str, ...],
    file: Path | None,
    agent: str,
    reading: str,
    site: str | None,
    jsonl: bool,
    as_json: bool,
) -> int:
    """Print the verdict of a robots.txt on each URL, with the line that decides, and the lines that have no effect."""
    if jsonl:
        return _jsonl(partial(check_robots_case, now=SystemClock().now(), rules=_rules))
    if file is None or not urls:
        raise UsageError("robots check needs --file ROBOTS.TXT and a URL, or --jsonl")
    body = file.read_bytes()
    robots_file, doubted = parse(body, max_bytes=octets_read(Reading(reading))), doubts_about(body)
    unknown = [{"line": line.number, "text": line.shown} for line in robots_file.extensions]
    for said in (*robots_file.notes, *doubted.sentences()):
        tell(f"{file}: {said}")
    for url in urls:
        own_site, path = split(canonical(url))
        on = split(canonical(site)).site if site else own_site
        rules = _rules(body, product_token(agent), Reading(reading), on)
        verdict, stated = rules.verdict(path), rules.stated_for(path)
        if as_json:
            preferences = {"preferences": [one._asdict() for one in stated]}
            print_json({"url": url, **asdict(verdict), **preferences, **doubted.as_json(), "unknown": unknown})
        else:
            rule = f"line {verdict.line}: {verdict.text.strip()}" if verdict.line else "no rule matches"
            say(f"{'allowed' if verdict.allowed else 'forbidden':9}  {url}  {rule}  ({verdict.reading})")
            for one in stated:
                say(f"{'':9}  {one.category}: {one.value}  ({sentence_of(one)})")
    return 0


@lru_cache(maxsize=64)
def _rules(body: bytes, token: str, reading: Reading, site: str) -> SiteRules:
    """The rules of one file as a crawl reads it. Cached, because consecutive cases are often about the same file."""
    most = octets_read(reading)
    tokens = RobotsSettings(reading).policy_tokens
    question = RobotsQuestion(MAX_CPU_S, f"{site}/robots.txt", body, site, token, reading.value, (), None, most, tokens)
    return read_robots_alone(question)


@cli.group()
def page() -> None:
    """Read an HTML page, without network."""


@page.command("check")
@click.argument("files", nargs=-1, metavar="FILE...", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--url", metavar="URL", help="The page's address.")
@click.option("--jsonl", is_flag=True, help="Cases from standard input, one JSON object a line; answers likewise.")
def page_check(files: tuple[Path, ...], url: str | None, jsonl: bool) -> int:
    """Print as JSON whether a page may be requested, indexed, copied and used, with the line that decides.

    The first FILE is the page, or its answer with the headers, as `curl -i` prints it. The others are files of the
    site: robots.txt, tdmrep.json, and a licence of RSL (.xml). A case of --jsonl may also name an `agent` and a
    `reading`.
    """
    with BlockingReader() as reader:
        check = partial(
            check_case, now=SystemClock().now(), read=reader.read, with_filed=with_filed, licensed=licensed_page
        )
        if jsonl:
            return _jsonl(check)
        if not files or url is None:
            raise UsageError("page check needs --url URL and a FILE, or --jsonl")
        print_json(_of_owner(check, canonical(url), *files), indent=1)
    return 0


def _of_owner(check: Callable[[dict[str, Any]], dict[str, Any]], url: str, file: Path, *others: Path) -> dict[str, Any]:
    """What an owner's files say to a crawl with the default settings: of the page, and of each use of it."""
    agent, (site, path) = Settings().identity.agent, split(url)
    status, headers, html = _answer_in(file.read_bytes())
    texts = {_kind_of(other): other.read_bytes() for other in others}
    rules = _rules(texts.get("robots", b""), product_token(agent), Reading.STRICT, site)
    verdict, stated = rules.verdict(path), rules.stated_for(path)
    headers = tagged(Fetched(url, 0.0, 0.0, headers), rules).headers
    tdmrep, licence = (texts.get(kind, b"").decode("utf-8", "replace") for kind in ("tdmrep", "license"))
    case = {"url": url, "html": html, "agent": agent, "headers": headers, "tdmrep": tdmrep, "license": licence}
    answer = _checked(check, case, str(file))
    said = [*stated, *(Preference(**one) for one in answer.get("preferences", ()))]
    if licence:
        said += licensed_by(licence.encode(), stated, site, path)
    wall = wall_in_headers(status, headers) or wall_in_body(html.encode("utf-8", "replace"))
    why = "" if verdict.allowed else f"not requested: line {verdict.line}, {verdict.text.strip()}"
    otherwise = "allowed" if answer["index"] else "not kept: the page says noindex"
    uses = {}
    for purpose in UsePurpose:
        refused = first_refusal(said, [purpose])
        uses[purpose.value] = why or (otherwise if refused is None else f"refused: {sentence_of(refused)}")
    return {
        "robots": {"allowed": verdict.allowed, "line": verdict.line, "text": verdict.text.strip()},
        "wall": None if wall is None else str(wall),
        "uses": uses,
        **answer,
        "preferences": [one._asdict() for one in said],
    }


def _answer_in(octets: bytes) -> tuple[int, Headers, str]:
    """The status, the headers and the body of an answer. A file that does not begin with a status line is a body."""
    head, end, body = octets.replace(b"\r\n", b"\n").partition(b"\n\n")
    first, *lines = head.decode("latin-1").split("\n")
    status = re.match(r"HTTP/\d(?:\.\d)? (\d{3})", first)
    if status is None or not end:
        return 200, (), octets.decode("utf-8", "replace")
    pairs = (line.partition(":") for line in lines)
    return int(status[1]), tuple((name, value.strip()) for name, _, value in pairs), body.decode("utf-8", "replace")


def _kind_of(file: Path) -> str:
    kind = {"robots.txt": "robots", "tdmrep.json": "tdmrep"}.get(file.name, "license" if file.suffix == ".xml" else "")
    if not kind:
        raise UsageError(f"{file}: page check takes files named robots.txt and tdmrep.json, and a licence (.xml)")
    return kind


def _jsonl(check: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """Print one answer for each line of standard input, in order.

    The answer to a bad case is its error. Returns the exit code, which is 2 if there was a bad case.
    """
    if sys.stdin is None:
        raise UsageError("--jsonl: standard input is closed")
    gc.set_threshold(100_000)  # a case leaves no cycles behind; looking for them takes a fifth of the time
    code = 0
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        try:
            print_json(_answer(check, line, f"standard input, line {number}"))
        except UsageError as error:
            code = error.exit_code
            print_json({"error": str(error)})
            tell(str(error))
    return code


def _answer(check: Callable[[dict[str, Any]], dict[str, Any]], line: bytes, where: str) -> dict[str, Any]:
    try:
        case = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON: {error}") from None
    if not isinstance(case, dict):
        raise UsageError(f"{where}: must be a JSON object")
    return _checked(check, case, where)


def _checked(check: Callable[[dict[str, Any]], dict[str, Any]], case: dict[str, Any], where: str) -> dict[str, Any]:
    try:
        return check(case)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
