"""The preferences about use that robots.txt states for a URL, by lines of their own and by groups of policy tokens.

The lines are ``Content-Usage``, ``Content-Signal`` and ``License``. Groups are those of RFC 9309 in every reading,
because the drafts extend RFC 9309. Sources: draft-ietf-aipref-attach, section 3; contentsignals.org; RSL 1.0;
draft-kelley-aipref-training-preference-signal; ``docs/protocols.md``, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from crawler.model import Preference
from crawler.preferences.purposes import bounded
from crawler.preferences.schemes import DISALLOWED, content_signal, content_usage, policy_token, rsl_license
from crawler.robots.fields import ALLOW, CONTENT_SIGNAL, CONTENT_USAGE, PREFERENCES
from crawler.robots.paths import Pattern, rfc_form, rfc_pattern
from crawler.robots.records import licence_lines, named_rules, stated
from crawler.robots.text import Line

SOURCE = "robots.txt"
#: The lines of each field that are read; files have one or a few. It bounds the work for each URL.
MAX_LINES = 1_000


class _Rule(NamedTuple):
    pattern: Pattern
    said: tuple[Preference, ...]


@dataclass(frozen=True, slots=True)
class PreferenceRules:
    """The preferences that one robots.txt states for one agent. Built once a file, asked for every URL."""

    usage: tuple[_Rule, ...] = ()  # longest path first, as ``signals``
    signals: tuple[_Rule, ...] = ()
    tokens: tuple[tuple[_Rule, ...], ...] = ()  # of each policy token, the same
    licenses: tuple[Preference, ...] = ()  # of the whole site

    @property
    def size(self) -> int:
        """The number of rules and licences. It measures the memory used."""
        return len(self.usage) + len(self.signals) + sum(map(len, self.tokens)) + len(self.licenses)

    def of(self, path: str) -> tuple[Preference, ...]:
        """The preferences for a path with its query, as :func:`crawler.url.split` returns it.

        Of the ``Content-Usage`` lines, and likewise of the ``Content-Signal`` lines, those with the longest path count.
        If several have a path of the same length, each states its preferences. Of the rules of a policy token the
        longest counts. The result is bounded.
        """
        if not self.usage and not self.signals and not self.tokens:
            return self.licenses
        form = rfc_form(path)
        tokens = (one for rules in self.tokens for one in _first(rules, form))
        return bounded((*_longest(self.usage, form), *_longest(self.signals, form), *tokens, *self.licenses))


NO_PREFERENCES = PreferenceRules()


def preference_rules(lines: Sequence[Line], token: str, tokens: Iterable[tuple[str, str]] = ()) -> PreferenceRules:
    """Read the preferences for the robot with the product token ``token``, given in lower case.

    ``tokens`` are pairs of a category and a policy token, whose groups state preferences about that category.
    """
    by_token = tuple(filter(None, (tuple(_token_rules(lines, *pair)) for pair in tokens)))
    if not any(line.field in PREFERENCES for line in lines):
        return PreferenceRules(tokens=by_token) if by_token else NO_PREFERENCES
    ours = stated(lines, token, frozenset({CONTENT_USAGE, CONTENT_SIGNAL}))
    licenses = islice(licence_lines(lines, token), MAX_LINES)
    return PreferenceRules(
        usage=_sorted(_stated(ours, CONTENT_USAGE)),
        signals=_sorted(_stated(ours, CONTENT_SIGNAL)),
        tokens=by_token,
        licenses=bounded([one for line in licenses for one in rsl_license(line.value, SOURCE, line.number, line.text)]),
    )


def says_nothing(line: Line) -> str:
    """Why a ``Content-Usage`` or ``Content-Signal`` line with a value states nothing; empty if it states something."""
    statement = _divided(line.value)[1]
    if line.field == CONTENT_USAGE and content_usage(statement, SOURCE) is None:
        return "it is no dictionary such as train-ai=n with keys in lower case, so it states nothing"
    if line.field == CONTENT_SIGNAL and line.value and not content_signal(statement, SOURCE):
        return "it gives no yes or no to search, ai-input or ai-train, and no level of use, so it states nothing"
    return ""


def _stated(lines: Iterable[Line], field: str) -> Iterator[_Rule]:
    """The rules of the lines of a field. A void line states nothing, also not that its category is unknown."""
    read = content_usage if field == CONTENT_USAGE else content_signal
    for line in islice((line for line in lines if line.field == field), MAX_LINES):
        path, statement = _divided(line.value)
        said = read(statement, SOURCE, line=line.number, text=line.text)
        if said or (said is not None and field == CONTENT_USAGE):
            yield _Rule(rfc_pattern(path), tuple(said))


def _token_rules(lines: Sequence[Line], category: str, token: str) -> list[_Rule]:
    """The rules of the groups for a policy token, the longest path first, and ``Allow`` first of equal ones."""
    rules = []
    for line in islice(named_rules(lines, token.lower()), MAX_LINES):
        if line.value:  # an empty value matches nothing
            said = policy_token(category, token, SOURCE, line.number, line.text, allows=line.field == ALLOW)
            rules.append(_Rule(rfc_pattern(line.value), (said,)))
    return sorted(rules, key=lambda rule: (-rule.pattern.octets, rule.said[0].value == DISALLOWED))


def _first(rules: Sequence[_Rule], form: str) -> tuple[Preference, ...]:
    """The preferences of the first rule that matches ``form``."""
    return next((rule.said for rule in rules if rule.pattern.matches(form)), ())


def _divided(value: str) -> tuple[str, str]:
    """The path and the statement of a line; the path is empty if the value does not begin with a slash."""
    if not value.startswith("/"):
        return "", value
    path, *rest = value.replace("\t", " ").split(" ", 1)
    return path, rest[0].strip() if rest else ""


def _sorted(rules: Iterable[_Rule]) -> tuple[_Rule, ...]:
    return tuple(sorted(rules, key=lambda rule: -rule.pattern.octets))


def _longest(rules: Sequence[_Rule], form: str) -> Iterator[Preference]:
    """The preferences of the rules with the longest path that matches ``form``."""
    longest = -1
    for pattern, said in rules:
        if pattern.octets < longest:
            return
        if pattern.matches(form):
            longest = pattern.octets
            yield from said
