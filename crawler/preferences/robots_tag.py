"""The ``Robots-Tag`` of a page's header and of robots.txt: the rules that it has for one agent.

Sources: draft-illyes-repext-03; RFC 9651 for the syntax; ``docs/protocols.md``, section 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

#: Directives of the search engines that take a value after a colon. In the header X-Robots-Tag these are no names of
#: agents.
VALUED_TERMS = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
#: The words that may follow the name of an agent and a colon in X-Robots-Tag. Any other word there is taken for the
#: value of an unknown directive, which must not hide the terms behind it.
KNOWN_TERMS = VALUED_TERMS | {
    *("all", "none", "index", "noindex", "follow", "nofollow", "noarchive", "nosnippet"),
    *("nocache", "noimageindex", "notranslate", "indexifembedded", "nositelinkssearchbox"),
    *("noai", "noimageai", "noodp", "noydir", "data-nosnippet"),
}

#: The rules of one robots.txt that are kept, and their characters in all. They go with every page to its parser.
MAX_SITE_RULES = 50
MAX_SITE_CHARS = 4_000

#: The members of a list, and the parts of a member, with strings in quotes kept whole (RFC 9651, 3.1).
_MEMBERS = re.compile(r'(?:"[^"]*"|[^",])+')
_PARTS = re.compile(r'(?:"[^"]*"|[^";])+')


def robots_tag(value: str, token: str) -> str:
    """The rules of a ``Robots-Tag`` value that address the agent ``token``, as the content of a tag.

    ``*;nosnippet, ExampleBot;noindex``: each member names an agent, its parameters are the rules. The rules for ``*``
    and for the agent add up (draft-illyes-repext-03, "union of rules"). Names are compared case-insensitively.
    """
    return ", ".join(_rules(value, token))


def site_robots_tag(values: Iterable[str], token: str) -> str:
    """The rules of all ``Robots-Tag`` lines of a robots.txt that address the agent ``token``, each once, and bounded.

    All :data:`KNOWN_TERMS` without a value have room. Known terms with a value come next, then all others. Octets that
    are no UTF-8 are replaced: a header of a page has none either.
    """
    ranks: dict[str, int] = {}
    for value in values:
        for rule in _rules(value, token):
            for term in [rule] if ":" in rule else rule.lower().split():
                name = term.partition(":")[0].strip().lower()
                ranks.setdefault(term, 2 if name not in KNOWN_TERMS else 1 if ":" in term else 0)
    kept: list[str] = []
    room = MAX_SITE_CHARS
    for term in sorted(ranks, key=ranks.__getitem__):
        if len(kept) < MAX_SITE_RULES and len(term) + 2 <= room:
            kept.append(term)
            room -= len(term) + 2
    return ", ".join(kept).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _rules(value: str, token: str) -> list[str]:
    rules: list[str] = []
    for member in _MEMBERS.findall(value):
        agent, _, _ = member.partition(";")
        if agent.strip(' \t"').lower() in ("*", token.lower()):
            rules += map(_rule, _PARTS.findall(member)[1:])
    return list(filter(None, rules))


def _rule(parameter: str) -> str:
    """A parameter in the form of a tag: ``max-snippet=20`` is ``max-snippet: 20``, ``@0`` a date (RFC 9651, 3.3.7)."""
    name, _, value = (part.strip() for part in parameter.partition("="))
    if value == "?0":
        return ""
    if value in ("", "?1"):
        return name
    value = value.strip('"')
    if value.startswith("@") and value[1:].isdigit() and len(value) < 12:
        value = datetime.fromtimestamp(int(value[1:]), UTC).isoformat()
    return f"{name}: {value}"
