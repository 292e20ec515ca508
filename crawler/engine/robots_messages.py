"""The question to a parser process about one robots.txt, and the limit on one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.engine.messages import Question
from crawler.model import Reading

if TYPE_CHECKING:  # few sites have a robots.txt that a parser process reads
    from crawler.robots.readings import SiteRules

#: Processor time that one file may take, in seconds. The slowest of 4,231 files of real sites takes 0.6.
MAX_CPU_S = 2.0


class RobotsQuestion(Question["SiteRules"], frozen=True, tag=True):
    """A robots.txt to be read, and the facts that its reading needs. It is read as a slow document.

    A ``Host`` line may name a host without a dot if it matches one of ``known_hosts`` (patterns); it is ignored if it
    names ``refuted``. ``max_bytes`` of the body are read.
    """

    site: str
    token: str
    reading: str
    known_hosts: tuple[str, ...]
    refuted: str | None
    max_bytes: int
    policy_tokens: tuple[tuple[str, str], ...] = ()

    judges_domain = False

    @property
    def is_slow(self) -> bool:
        """See :class:`Question`."""
        return True

    def read(self) -> SiteRules:
        """The rules of the file, as a message can hold them."""
        from crawler.engine.robots_reading import read_bounded

        return read_bounded(self)

    def unread(self, why: str) -> SiteRules:
        """The rules of a closed site: any line of the file may close a path."""
        from crawler.robots.readings import unread_rules

        return unread_rules(Reading(self.reading), why)

    @classmethod
    def answers(cls) -> Any:
        """See :class:`Question`."""
        from crawler.robots.readings import SiteRules

        return SiteRules
