"""The fields of robots.txt, and the field that a misspelt line means.

``strict`` also closes what an owner clearly meant to close (:mod:`crawler.robots.meant`). This module decides which
misspelt names and missing colons are clear. Sources: the 1996 draft, 3.3; RFC 9309, 2.2; ``docs/protocols.md``,
section 1, "What an owner clearly meant".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from crawler.formatting import nearest

USER_AGENT = "user-agent"
ALLOW = "allow"
DISALLOW = "disallow"
HOST = "host"
CRAWL_DELAY = "crawl-delay"
REQUEST_RATE = "request-rate"
SITEMAP = "sitemap"
MOBILE_AGENT_SERVER = "mobile-agent-server"
ROBOTS_TAG = "robots-tag"
CONTENT_USAGE = "content-usage"
CONTENT_SIGNAL = "content-signal"
LICENSE = "license"

#: Fields that state preferences about use (:mod:`crawler.robots.preferences`). They decide on no request by themselves.
PREFERENCES = frozenset({CONTENT_USAGE, CONTENT_SIGNAL, LICENSE})

#: Fields of the protocol itself. A misspelt field is compared with these.
_OWN_FIELDS = frozenset(
    {USER_AGENT, ALLOW, DISALLOW, HOST, CRAWL_DELAY, REQUEST_RATE, SITEMAP, MOBILE_AGENT_SERVER, ROBOTS_TAG}
)

#: Fields to which some reading gives a meaning. Lines with other fields are extensions.
KNOWN_FIELDS = _OWN_FIELDS | PREFERENCES

#: The rules of a record.
RULES = frozenset({ALLOW, DISALLOW})

#: Fields that belong to a record. ``Sitemap`` and unknown fields may stand anywhere and separate nothing.
MEMBERS = RULES | {CRAWL_DELAY, REQUEST_RATE, HOST}

#: Fields that are read although they are misspelt.
_MENDED = frozenset({USER_AGENT, ALLOW, DISALLOW, CRAWL_DELAY, REQUEST_RATE})

_MAX_NAMES = 1000  # how many unknown field names of one file are compared with known ones
_MAX_NAME_CHARS = 40
_ALIKE = 0.8  # difflib's ratio: it accepts one wrong letter in "allow", two or three in longer names

# "host" is left out: many words differ from it in one letter.
_NAMES = sorted(_OWN_FIELDS - {HOST})
_BY_LETTERS = {name.replace("-", ""): name for name in _NAMES}

_SPACING = re.compile("[ _-]")
_SPACED_NAMES = "|".join(name.replace("-", "[ _-]?") for name in _NAMES)
_UNCOLONED = re.compile(rf"({_SPACED_NAMES})(?![\w-])[^\w/*]*([\w/*].*)", re.IGNORECASE | re.DOTALL)
_COMMENTED_OUT = ("//", "/*", ";", "!", "<!--", "--", "%", "'")
_PLAIN_NAME = re.compile(r"[-*\u2022 \t]*[a-z](?:[a-z \t_-]*[a-z])?")

# The values that a line without a colon must have: prose does not have them.
_PATHS = re.compile(r"(?:/|\*|https?://)\S*(?:[ \t]+/\S*)*", re.IGNORECASE)
_CLEAR_VALUE = {
    USER_AGENT: re.compile(r"\*|[A-Za-z0-9_-]+"),
    ALLOW: _PATHS,
    DISALLOW: _PATHS,
    CRAWL_DELAY: re.compile(r"[0-9.]+"),
    REQUEST_RATE: re.compile(r"[0-9]+/[0-9]+[smh]?"),
}


@dataclass(slots=True)
class Names:
    """The unknown field names of one file. Each is compared once, and only the first thousand are."""

    seen: dict[str, str | None] = field(default_factory=dict)

    def like(self, name: str) -> str | None:
        """The known field that ``name``, in lower case, nearly equals; None if the name is commented out."""
        if name not in self.seen:
            if len(self.seen) >= _MAX_NAMES or len(name) > _MAX_NAME_CHARS:
                return None
            self.seen[name] = _alike(name)
        return self.seen[name]

    def meant(self, name: str) -> str | None:
        """The field that ``name`` means without doubt; None if there is a doubt, or if its lines close nothing.

        "Disalow", "User Agent" and "- Disallow" are clear. "NoDisallow" and "Disallow-old" are not: they may be
        switched off.
        """
        found = self.like(name)
        if found not in _MENDED or _PLAIN_NAME.fullmatch(name) is None:
            return None
        letters, known = "".join(filter(str.isalpha, name)), found.replace("-", "")
        longer = len(letters) - len(known)
        is_switched_off = longer > 0 and (letters.endswith(known) or (longer > 1 and letters.startswith(known)))
        return None if is_switched_off else found


def _alike(name: str) -> str | None:
    if name.startswith(_COMMENTED_OUT):
        return None
    letters = "".join(filter(str.isalpha, name))
    alike = nearest(letters, _BY_LETTERS, alike=_ALIKE)
    return _BY_LETTERS[alike[0]] if alike else None


def without_colon(text: str) -> tuple[str, str] | None:
    """The known field name with which ``text`` begins, and the value that follows without a colon; else None."""
    found = _UNCOLONED.match(text)
    return None if found is None else (_BY_LETTERS[_SPACING.sub("", found[1].lower())], found[2])


def is_clear_value(name: str, value: str) -> bool:
    """Whether ``value`` shows that a line without a colon is a line of the field ``name``, and no prose."""
    return name in _CLEAR_VALUE and _CLEAR_VALUE[name].fullmatch(value) is not None
