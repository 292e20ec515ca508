"""``Mobile-agent-server`` lines, which name the host that accepts mobile agents for a part of a site.

Sources: the Internet-Draft of February 1997, 3.1, 3.2 and 4; ``docs/protocols.md``, section 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crawler.robots.fields import MOBILE_AGENT_SERVER
from crawler.robots.matching import PatternIndex, TooCostly, index_of
from crawler.robots.paths import Form, Pattern
from crawler.robots.text import Line

# No path contains control characters or octets outside UTF-8, and not every database stores them.
_LINE = re.compile(
    r"(?P<path>/[^\x00-\x20\x7f-\x9f\ud800-\udfff]*)[ \t]+(?:(?P<none>none)|"
    r"(?P<url>[A-Za-z0-9+.-]+://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AgentServer:
    """The server for mobile agents of a URL (None: not available) and the deciding line (None: no line decides)."""

    url: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class AgentServers:
    """The correct lines of a file, last line first: the last matching line wins (3.1)."""

    latest_first: tuple[AgentServer, ...]
    paths: tuple[str, ...]  # of these lines, as written
    patterns: PatternIndex  # of these lines
    form: Form

    def at(self, path: str) -> AgentServer:
        """The server for a path with its query; "not available" if the search exceeds its bound."""
        last = len(self.latest_first)
        if last:
            try:
                first = self.patterns.first(self.form.of(path), last)
            except TooCostly:
                return AgentServer()
            if first < last:
                return self.latest_first[first]
        return AgentServer()


def agent_servers(lines: Iterable[Line], compile_path: Callable[[str], Pattern], form: Form) -> AgentServers:
    """Collect the lines of a file, without those that have bad syntax. Paths match like those of ``Allow`` lines."""
    found: list[tuple[str, AgentServer]] = []
    for line in lines:
        if line.field != MOBILE_AGENT_SERVER:
            continue
        match = _LINE.fullmatch(line.value)
        if match is not None and int(match["port"] or 0) <= 65535:
            found.append((match["path"], AgentServer(match["url"], line.number)))
    found.reverse()
    paths = tuple(path for path, _ in found)
    return AgentServers(tuple(server for _, server in found), paths, index_of(map(compile_path, paths)), form)
