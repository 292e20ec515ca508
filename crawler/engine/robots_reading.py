"""Reads a robots.txt for a :class:`~crawler.engine.robots_messages.RobotsQuestion`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from crawler.engine.robots_messages import RobotsQuestion
from crawler.model import Reading
from crawler.robots.readings import SiteRules, read
from crawler.robots.rules import Rules
from crawler.robots.text import SMALL_BYTES, Line, parse
from crawler.url import host_matches

#: The rules of one file that the crawler keeps (:attr:`crawler.robots.readings.SiteRules.size`). The longest of 4,231
#: files of real sites has 31,853 lines, so some 64,000 rules.
MAX_RULES = 250_000


def knows_host(patterns: tuple[str, ...], host: str) -> bool:
    """Whether a host matches one of ``patterns``."""
    return any(host_matches(pattern, host.lower().rstrip(".")) for pattern in patterns)


def read_robots(question: RobotsQuestion) -> SiteRules:
    """The rules of a file."""
    return read(
        parse(question.body, max_bytes=question.max_bytes),
        token=question.token,
        reading=Reading(question.reading),
        site=question.site,
        knows_host=partial(knows_host, question.known_hosts),
        refuted=question.refuted,
        policy_tokens=question.policy_tokens,
    )


def read_robots_alone(question: RobotsQuestion) -> SiteRules:
    """The rules of a file for a command that explains it: a large file is read in a parser process, within its limits.

    It blocks. Raises as :meth:`crawler.engine.parser_pool.ParserPool.ask`.
    """
    if len(question.body) <= SMALL_BYTES:
        return read_robots(question)
    from crawler.engine.parser_pool import BlockingReader  # a small file needs no process

    with BlockingReader() as reader:
        return reader.ask(question)


def read_bounded(question: RobotsQuestion) -> SiteRules:
    """The rules of a file as a message can hold them; those of a closed site if they are more than :data:`MAX_RULES`.

    Lines have the text that is shown alone. Written lines may hold octets that no message can hold.
    """
    rules = read_robots(question)
    if rules.size > MAX_RULES:
        return question.unread(f"more than {MAX_RULES:,} rules")
    return replace(rules, rule_sets=tuple(map(_shown, rules.rule_sets)))


def _shown(part: Rules) -> Rules:
    return replace(part, lines=tuple(Line(line.number, line.field, "", line.shown) for line in part.lines))
