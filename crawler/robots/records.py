"""Select the lines of a file that apply to one agent: the records of the 1996 draft, the groups of RFC 9309.

Sources: the 1996 draft, 3.2, 3.2.1 and 3.3; RFC 9309, 2.2.1; ``docs/protocols.md``, section 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from crawler.robots.fields import LICENSE, MEMBERS, RULES, USER_AGENT
from crawler.robots.text import Line

_TOKEN = re.compile(r"[A-Za-z0-9_-]*")
_RFC_TOKEN = re.compile(r"[A-Za-z_-]*")


def product_token(user_agent: str) -> str:
    """The name that a robot scans for, in lower case: ``figtree`` for ``FigTree/0.1 Robot/1.0`` (1996 draft, 3.2.1).

    Empty if the text does not begin with a name; only records for ``*`` apply then.
    """
    return _token(_TOKEN, user_agent.strip())


def draft_record(lines: Sequence[Line], token: str) -> list[Line]:
    """The members of the first record that names ``token``, else of the first for ``*`` (1996 draft, 3.2.1).

    A record names the token if one of its ``User-agent`` values contains it. A value may list several agents.
    """
    default: list[Line] | None = None
    for agents, members in _records(lines):
        if token and any(token in agent for agent in agents):
            return members
        if default is None and any("*" in agent.split() for agent in agents):
            default = members
    return default or []


def rfc_rules(lines: Sequence[Line], token: str, *, digits: bool = False) -> tuple[list[Line], list[Line]]:
    """The rules of all groups that name ``token``, else of all for ``*``; and the other members of these groups.

    A ``User-agent`` line after a rule begins a new group (RFC 9309, 2.2.1). RFC 9309 does not know ``Crawl-delay``,
    so by its grammar such a line does not close a group. The other members are therefore assigned as their authors
    mean them: any member closes the list of agents. ``digits``: compare names only with their digits included.
    """
    named = _rfc_names(lines, token, digits)
    rules = list(_merged(lines, named, RULES))
    others = [line for line in _merged(lines, named, MEMBERS) if line.field not in RULES]
    return rules, others


def named_rules(lines: Sequence[Line], token: str) -> list[Line]:
    """The rules of all groups that name ``token``, in lower case; none if no group does."""
    named = {line.value for line in lines if line.field == USER_AGENT and _token(_TOKEN, line.value) == token}
    return list(_merged(lines, named, RULES)) if named else []


def stated(lines: Sequence[Line], token: str, fields: frozenset[str]) -> list[Line]:
    """The lines with ``fields`` in the groups that name ``token``, else in those for ``*``; and those above all groups.

    Such a line belongs to its group as a rule does (draft-ietf-aipref-attach, section 3). A line above any
    ``User-agent`` line names no robot, so it is meant for all.
    """
    start = next((at for at, line in enumerate(lines) if line.field == USER_AGENT), len(lines))
    above = [line for line in lines[:start] if line.field in fields]
    grouped = _merged(lines, _rfc_names(lines, token, digits=False), MEMBERS | fields)
    return [*above, *(line for line in grouped if line.field in fields)]


def licence_lines(lines: Sequence[Line], token: str) -> list[Line]:
    """The ``License`` lines in the groups that name ``token``, else in those for ``*``; else those outside all groups.

    RSL 1.0, section 4.4.2. A line that stands behind a blank line is outside a group that is not ours.
    """
    members = MEMBERS | {LICENSE}
    ours = [line for line in _merged(lines, _rfc_names(lines, token, digits=False), members) if line.field == LICENSE]
    return ours or list(_outside_groups(lines))


def _outside_groups(lines: Iterable[Line]) -> Iterator[Line]:
    """The ``License`` lines that belong to no group, as their owner sees the file."""
    is_outside = True
    for line in lines:
        if line.field == LICENSE and is_outside:
            yield line
        elif not line.text:
            is_outside = True
        elif line.field == USER_AGENT or line.field in MEMBERS:
            is_outside = False


def _records(lines: Iterable[Line]) -> Iterator[tuple[list[str], list[Line]]]:
    """The draft's records as (agents, members). Agents without a member form no record (1996 draft, 3.3)."""
    agents: list[str] = []
    members: list[Line] = []
    for line in lines:
        starts = line.field == USER_AGENT
        if not line.text or (starts and members):
            if members:
                yield agents, members
            agents, members = [], []
        if starts:
            agents.append(line.value.lower())
        elif agents and line.field in MEMBERS:
            members.append(line)
    if members:
        yield agents, members


def _rfc_names(lines: Iterable[Line], token: str, digits: bool) -> set[str]:
    """The ``User-agent`` values that apply to ``token``.

    A product token of RFC 9309 has no digits: ``AB42bot`` names AB. But robots with digits in their names exist. If
    a group names the token with digits included, that group applies; else the RFC's grammar decides.
    """
    values = {line.value for line in lines if line.field == USER_AGENT}
    if token:
        for pattern in (_TOKEN,) if digits else (_TOKEN, _RFC_TOKEN):
            if named := {value for value in values if _token(pattern, value) == token}:
                return named
    return values & {"*"}


def _merged(lines: Iterable[Line], named: set[str], members: frozenset[str]) -> Iterator[Line]:
    """The members of all groups with an agent in ``named``. Each member closes the list of agents before it."""
    applies, closed = False, True
    for line in lines:
        if line.field == USER_AGENT:
            applies = line.value in named or (applies and not closed)
            closed = False
        elif line.field in members:
            closed = True
            if applies:
                yield line


def _token(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.match(text)
    return match[0].lower() if match else ""
