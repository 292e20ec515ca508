"""Paths that ``strict`` closes only by the order of the lines: a ``Disallow`` above the ``Allow`` that was meant.

By the 1996 draft (3.2.2) the first match decides, by RFC 9309 (2.2.2) the longest. Only the owner or the reading can
change this, so a warning names the files for which it matters: ``docs/protocols.md``, section 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawler.model import Reading
from crawler.robots.readings import SiteRules, read
from crawler.robots.rules import Verdict
from crawler.robots.text import RobotsFile


@dataclass(frozen=True, slots=True)
class FirstMatch:
    """The line that closes a path in ``strict``, and the line that opens it in ``rfc9309``."""

    closed: Verdict
    opened: Verdict

    @property
    def sentence(self) -> str:
        """The lines, and what the owner can do."""
        return (
            f"line {self.closed.line} ({self.closed.text}) stands above line {self.opened.line} ({self.opened.text}),"
            " and by the 1996 draft the first match decides; its owner can put the Allow line first"
        )


def lost_to_first_match(file: RobotsFile, strict: SiteRules, *, token: str, site: str, path: str) -> FirstMatch | None:
    """The two lines, if only the order of the lines closes ``path`` in ``strict``; else None.

    ``strict`` are the rules of ``file`` for ``token`` at ``site`` in that reading.
    """
    refusals = [verdict for rules in strict.rule_sets if not (verdict := rules.decide(path)).allowed]
    if not refusals or any(refusal.reading is not Reading.DRAFT1996 for refusal in refusals):
        return None
    opened = read(file, token=token, reading=Reading.RFC9309, site=site).verdict(path)
    return FirstMatch(refusals[0], opened) if opened.allowed and opened.line is not None else None
