"""Reads a robots.txt for a :class:`~crawler.engine.robots_messages.RobotsQuestion`, and packs its rules."""

from __future__ import annotations

import io
import marshal
import pickle
from enum import Enum
from functools import partial
from typing import Any

from crawler.engine.robots_messages import RobotsQuestion
from crawler.model import Reading
from crawler.robots.readings import SiteRules, read, unread_rules
from crawler.robots.text import parse
from crawler.url import host_matches

#: The rules of one file that the crawler keeps (:attr:`crawler.robots.readings.SiteRules.size`). The longest of 4,231
#: files of real sites has 31,853 lines, so some 64,000 rules.
MAX_RULES = 250_000
_MODULES = ("crawler.robots.", "crawler.preferences.")


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
    )


def pack_rules(answer: SiteRules | str) -> bytes:
    """The rules of a file, or the description of a bug that it brought to light, as one message.

    If the rules are more than :data:`MAX_RULES`, the message has those of a closed site.
    """
    if isinstance(answer, str):
        return marshal.dumps(answer)
    if answer.size > MAX_RULES:
        answer = unread_rules(answer.reading, f"more than {MAX_RULES:,} rules")
    pickled = io.BytesIO()
    _Pickler(pickled, pickle.HIGHEST_PROTOCOL).dump(answer)
    return marshal.dumps(pickled.getvalue())


def unpack_rules(message: bytes) -> SiteRules | str:
    """The answer in a message. Raises :class:`pickle.UnpicklingError` if it names anything but parts of rules."""
    answer = marshal.loads(message)
    if isinstance(answer, str):
        return answer
    rules = _Unpickler(io.BytesIO(answer)).load()
    assert isinstance(rules, SiteRules)
    return rules


class _Pickler(pickle.Pickler):
    """Names a member of an enumeration by its value, as of Python 3.11.4; earlier ones name ``builtins.getattr``."""

    def reducer_override(self, obj: Any) -> Any:
        return (type(obj), (obj.value,)) if isinstance(obj, Enum) else NotImplemented


class _Unpickler(pickle.Unpickler):
    """A process that a page has taken over must not run its own code in the crawler by its answer."""

    def find_class(self, module: str, name: str) -> Any:
        found = None
        if "." not in name and (module == "crawler.model" or module.startswith(_MODULES)):
            found = super().find_class(module, name)
        if getattr(found, "__module__", None) != module:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of rules")
        return found
