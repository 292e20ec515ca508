"""Reads a robots.txt for a :class:`~crawler.engine.robots_messages.RobotsQuestion`, and packs its rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from crawler.engine.messages import MAX_ANSWER_BYTES
from crawler.engine.robots_messages import RobotsQuestion
from crawler.model import Reading
from crawler.robots.paths import draft_form, rfc_form, rfc_query_form, rfc_written_form
from crawler.robots.readings import SiteRules, read, unread_rules
from crawler.robots.rules import Rules
from crawler.robots.text import SMALL_BYTES, Line, parse
from crawler.url import host_matches

#: The rules of one file that the crawler keeps (:attr:`crawler.robots.readings.SiteRules.size`). The longest of 4,231
#: files of real sites has 31,853 lines, so some 64,000 rules.
MAX_RULES = 250_000
#: The functions that rules refer to. A message has their names.
_FORMS: dict[str, Callable[[str], str | None]] = {
    form.__name__: form for form in (draft_form, rfc_form, rfc_query_form, rfc_written_form)
}


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

    It blocks. Raises as :meth:`crawler.engine.parser_pool.ParserPool.read`.
    """
    if len(question.body) <= SMALL_BYTES:
        return read_robots(question)
    from crawler.engine.parser_pool import BlockingReader  # a small file needs no process

    with BlockingReader() as reader:
        return reader.read_robots(question)


def pack_rules(answer: SiteRules | str) -> bytes:
    """The rules of a file, or the description of a bug that it brought to light, as one message.

    If the rules are more than :data:`MAX_RULES`, or their message too long, the message has those of a closed site.
    """
    if isinstance(answer, str):
        return _ENCODER.encode(answer)
    if answer.size > MAX_RULES:
        return _ENCODER.encode(unread_rules(answer.reading, f"more than {MAX_RULES:,} rules"))
    message = _ENCODER.encode(replace(answer, rule_sets=tuple(map(_shown, answer.rule_sets))))
    if len(message) > MAX_ANSWER_BYTES:
        return _ENCODER.encode(unread_rules(answer.reading, f"rules of more than {MAX_ANSWER_BYTES >> 20} MB"))
    return message


def unpack_rules(message: bytes) -> SiteRules | str:
    """The answer in a message. Raises :class:`msgspec.DecodeError` if there is none."""
    return _DECODER.decode(message)


def _shown(part: Rules) -> Rules:
    """The part with its lines as they are shown. Written lines may hold octets that no message can hold."""
    return replace(part, lines=tuple(Line(line.number, line.field, "", line.shown) for line in part.lines))


def _name_of(form: Any) -> str:
    if form not in _FORMS.values():
        raise TypeError(f"no part of rules: {form!r}")
    return str(form.__name__)


def _form_named(expected: object, name: object) -> Callable[[str], str | None]:
    if not isinstance(name, str) or name not in _FORMS:
        raise msgspec.ValidationError("no part of rules")
    return _FORMS[name]


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_name_of)
_DECODER: msgspec.msgpack.Decoder[SiteRules | str] = msgspec.msgpack.Decoder(SiteRules | str, dec_hook=_form_named)
