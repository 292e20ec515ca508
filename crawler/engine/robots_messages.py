"""The messages between the crawler and a parser process about one robots.txt, and the limits on one file."""

from __future__ import annotations

import io
import marshal
import pickle
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from crawler.engine.page_messages import Question
from crawler.model import Reading
from crawler.robots.readings import SiteRules, read, unread_rules
from crawler.robots.text import parse
from crawler.url import host_matches

#: Processor time that one file may take, in seconds. The slowest of 4,231 files of real sites takes 0.6.
MAX_CPU_S = 2.0
#: The rules of one file that the crawler keeps (:attr:`crawler.robots.readings.SiteRules.size`). The longest of these
#: files has 31,853 lines, so some 64,000 rules.
MAX_RULES = 250_000
_KIND = "robots.txt"  # the first value of such a question, which tells it from one about a page
_MODULES = ("crawler.robots.", "crawler.preferences.")


class RobotsQuestion(NamedTuple):
    """A robots.txt to be read, and the facts that its reading needs.

    A ``Host`` line may name a host without a dot if it matches one of ``known_hosts`` (patterns); it is ignored if it
    names ``refuted``. ``max_bytes`` of the body are read. The system ends a process that takes more than ``max_cpu_s``
    of processor time for the file.
    """

    max_cpu_s: float
    url: str
    site: str
    token: str
    reading: str
    known_hosts: tuple[str, ...]
    refuted: str | None
    max_bytes: int
    body: bytes

    def packed(self) -> bytes:
        """The question as one message."""
        return marshal.dumps((_KIND, *self))


def unpack_question(message: bytes) -> Question | RobotsQuestion:
    """The question in a message, about a page or about a robots.txt."""
    values = marshal.loads(message)
    return RobotsQuestion(*values[1:]) if values[0] == _KIND else Question(*values)


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
