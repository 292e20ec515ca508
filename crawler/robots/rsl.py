"""Licences of RSL 1.0: what they say of the uses of a page (pure).

Sources: "Really Simple Licensing 1.0" (RSL Technical Steering Committee, 2025, errata until August 2026): 3.1.1
(precedence), 3.2.1 (``max-age``), 3.3 (``content``), 3.4 (``license``), 3.5 and 3.6 (``permits``, ``prohibits``), 3.7
(``payment``), 3.12 (``reporting``), 4.4 (robots.txt). ``docs/protocols.md``, section 7, says how gaps are closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from crawler.model import Failed, FetchResult, Preference, Purpose, RobotsAction, RobotsCopy, SiteFile
from crawler.preferences.purposes import bounded
from crawler.preferences.schemes import ALLOWED, DISALLOWED, LICENSE, OTHER_USE, Scheme
from crawler.reasons import ErrorKind
from crawler.robots.paths import Pattern, rfc_form, rfc_pattern
from crawler.robots.response import Follow, RobotsSettings, interpret
from crawler.terminal_text import shown
from crawler.url import NotCrawlable, canonicalise, split

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SOURCE = "licence"
MAX_BYTES = 64 << 10

#: The uses, by the word for each in a licence, from the general word to the special one.
_USES: Mapping[str, tuple[str, ...]] = {
    "search": ("all", "search"),
    "train-ai": ("all", "ai-all", "ai-train"),
    "ai-input": ("all", "ai-all", "ai-input"),
    "ai-index": ("all", "ai-all", "ai-index"),
    OTHER_USE: ("all",),
}
#: The types of payment that ask for nothing that the crawler would have to pay. A licence without payment is free.
_FREE = frozenset({"free", "attribution"})
#: The children of ``license`` that are read, and ``legal``, which asks for nothing. Others may set conditions, as
#: ``reporting`` does: the crawler reports nothing.
_TERMS = frozenset({"permits", "prohibits", "payment", "legal"})
#: How long a licence holds at most, in days, if its ``max-age`` does not say otherwise (3.2.1).
_MAX_AGE_DAYS = 30
_DAY_S = 86_400.0


class NotALicence(ValueError):
    """The document is no licence of RSL."""


@dataclass(slots=True)
class _Offer:
    """One ``license`` element: its usage terms, ``None`` if it has no element of the kind."""

    permits: set[str] | None = None
    prohibits: set[str] = field(default_factory=set)
    payment: str = "free"
    conditions: list[tuple[str, str]] = field(default_factory=list)  # on users and places
    is_understood: bool = True

    @property
    def is_open(self) -> bool:
        """Whether it asks for nothing that the crawler would have to do."""
        return self.payment in _FREE and self.is_understood

    def says_of(self, words: tuple[str, ...]) -> bool | None:
        """Whether the offer permits a use; ``None``: it does not say. The more special word wins, else the refusal."""
        permitted = _rank(words, self.permits or ())
        prohibited = _rank(words, self.prohibits)
        if prohibited >= permitted and prohibited >= 0:
            return False
        if permitted >= 0:
            return True
        return None if self.permits is None else False


@dataclass(slots=True)
class _Content:
    """One ``content`` element. ``site`` is empty if its URL is a path, which is one of the site that is asked."""

    site: str
    pattern: Pattern | None  # None: all paths
    rank: int
    server: str
    offers: list[_Offer] = field(default_factory=list)

    def covers(self, site: str, form: str) -> bool:
        return self.site in ("", site) and (self.pattern is None or self.pattern.matches(form))

    def says_of(self, words: tuple[str, ...]) -> bool | None:
        """Whether it permits a use; ``None``: it does not say. Its server gives licences that the crawler has not."""
        answers = [] if self.server else [offer.says_of(words) for offer in self.offers if offer.is_open]
        return True if True in answers else None if None in answers else False


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence document that was read."""

    contents: tuple[_Content, ...] = ()
    max_age_s: float = _MAX_AGE_DAYS * _DAY_S

    def of(self, site: str, path: str, url: str) -> tuple[Preference, ...]:
        """What the licence at ``url`` says of a path of ``site``.

        Of each use the most special ``content`` that covers the path and says something decides (3.1.1); of two with
        the same URL, the refusal. Each ``license`` element is an offer. A use is refused unless an offer that asks for
        nothing leaves it open.
        """
        form = rfc_form(path)
        covering = sorted((one for one in self.contents if one.offers and one.covers(site, form)), key=_rank_of)
        said = [one for content in covering if content.rank == covering[-1].rank for one in _conditions(content, url)]
        for category, words in _USES.items():
            for _, equals in groupby(reversed(covering), key=_rank_of):
                answers = [content.says_of(words) for content in equals]
                if False in answers or True in answers:
                    said.append(_preference(category, DISALLOWED if False in answers else ALLOWED, url))
                    break
        return bounded(said)


def _rank_of(content: _Content) -> int:
    return content.rank


def _conditions(content: _Content, url: str) -> Iterator[Preference]:
    """The conditions of a content, which are recorded."""
    if content.server:
        yield _preference("server", content.server, url)
    for offer in content.offers:
        if offer.payment != "free":
            yield _preference("payment", offer.payment, url)
        for kind, words in offer.conditions:
            yield _preference(kind, words, url)


NO_LICENCE = Licence()


def unavailable(url: str, why: str) -> tuple[Preference, ...]:
    """What follows from a licence that cannot be had: it refuses every use."""
    text = f"{url} could not be had: {why}"
    return tuple(_preference(category, DISALLOWED, text) for category in _USES)


def read_licence(body: bytes) -> Licence:
    """Read a licence. Raises :class:`NotALicence` for any other document.

    A DOCTYPE ends the reading, so a document never defines an entity.
    """
    from xml.etree import ElementTree  # few sites have a licence

    class NoDoctype(ElementTree.TreeBuilder):
        def doctype(self, name: str, public_id: str | None, system_id: str | None) -> None:
            raise NotALicence("a DOCTYPE, which is refused")

    try:
        root = ElementTree.fromstring(body, ElementTree.XMLParser(target=NoDoctype()))
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise error if isinstance(error, NotALicence) else NotALicence(f"broken XML: {error}") from None
    namespace, _, name = root.tag.rpartition("}")
    if name.lower() != "rsl":
        raise NotALicence(f"the document is <{name[:40]}>")
    contents = [_content(element, namespace) for kind, element in _children(root, namespace) if kind == "content"]
    if not contents:
        raise NotALicence("a licence without content")
    days = root.get("max-age", "").strip()
    is_dated = days.isdecimal() and int(days[:6]) > 0
    return Licence(tuple(contents), (int(days[:6]) if is_dated else _MAX_AGE_DAYS) * _DAY_S)


def _children(element: Element, namespace: str) -> Iterator[tuple[str, Element]]:
    """The children by name. Those of another namespace than the root's are extensions of RSL, which are ignored (3)."""
    for child in element:
        space, _, name = child.tag.rpartition("}")
        if space == namespace:
            yield name.lower(), child


def _content(element: Element, namespace: str) -> _Content:
    url, server = element.get("url", "").strip(), element.get("server", "").strip()
    offers = [_offer(each, namespace) for kind, each in _children(element, namespace) if kind == "license"]
    if not url or url.startswith("/"):
        return _Content("", rfc_pattern(url) if url else None, len(url), server, offers)
    try:
        site, path = split(canonicalise(url))
    except NotCrawlable as error:
        raise NotALicence(f"a content that is no URL: {error}") from None
    return _Content(site, rfc_pattern(path), len(path), server, offers)


def _offer(element: Element, namespace: str) -> _Offer:
    offer = _Offer()
    for name, term in _children(element, namespace):
        # Words are divided by blanks (3.5). Some editors of licences write commas. No element hides a prohibited word.
        text = " ".join(term.itertext()) if name == "prohibits" else term.text or ""
        words = text.replace(",", " ").lower().split()
        kind = term.get("type", "usage").strip().lower()
        match name:
            case "payment":
                offer.payment = term.get("type", "free").strip().lower()
            case "permits" | "prohibits" if kind in ("user", "geo"):
                offer.conditions += [(kind, f"{name} {word}") for word in words]
            case "permits" if kind == "usage":
                offer.permits = (offer.permits or set()) | set(words)
            case "prohibits" if kind == "usage":
                offer.prohibits |= set(words)
            case _ if name not in _TERMS:
                offer.is_understood = False
    return offer


def licensed_by(text: bytes, stated: Iterable[Preference], site: str, path: str) -> tuple[Preference, ...]:
    """What the licence ``text`` says of a path, if the ``stated`` preferences name one; for checks without network."""
    said: list[Preference] = []
    for url in named_licences(stated):
        try:
            said += read_licence(text).of(site, path, url)
        except NotALicence as error:
            said += unavailable(url, shown(str(error)))
    return tuple(said)


def licensed_page(stated: Iterable[Preference], text: str, inline: str, url: str) -> tuple[Preference, ...]:
    """What the licence ``text`` that a page names, and the one in the page, say of it; for checks without network."""
    said = inline_licence(inline, url) if inline else ()
    return (*said, *licensed_by(text.encode("utf-8", "replace"), stated, *split(url))) if text else said


def inline_licence(text: str, url: str) -> tuple[Preference, ...]:
    """What the licence that stands in the page at ``url`` says of the page."""
    try:
        return read_licence(text.encode("utf-8", "replace")).of(*split(url), url)
    except NotALicence as error:
        return unavailable(url, shown(str(error)))


def named_licences(stated: Iterable[Preference]) -> list[str]:
    """The URLs of the licences that preferences name, each once."""
    return list(dict.fromkeys(one.value for one in stated if one.category == LICENSE))


def licence_file(answer: FetchResult, url: str, *, settings: RobotsSettings, previous: SiteFile | None) -> SiteFile:
    """The row of an answer for the licence at ``url``. Its times are those of a robots.txt with this answer.

    ``previous`` is the row before.
    """
    now, path = answer.finished_at, split(url).path
    before = None if previous is None else _as_robots_copy(previous)
    if isinstance(answer, Failed) and answer.kind is ErrorKind.TOO_LARGE:
        until = now + settings.retry_max_s
        return SiteFile(path, Purpose.LICENSE, now, str(answer.status), note=answer.error.sentence, valid_until=until)
    copy = interpret(answer, settings=settings, previous=before, hops=0, seen=(url,), now=now)
    if isinstance(copy, Follow):
        until = now + settings.min_fresh_s
        note = f"redirects to {copy.url}"
        return SiteFile(path, Purpose.LICENSE, now, str(answer.status), b"", note, until, moved_to=copy.url)
    until = copy.expires_at if copy.retry_at is None else copy.retry_at
    body = copy.body or b"" if copy.action is RobotsAction.PARSE else b""
    note = "" if copy.action is RobotsAction.PARSE else copy.note or copy.status
    failing_since = copy.failing_since if copy.action is RobotsAction.DEFER else None
    file = SiteFile(path, Purpose.LICENSE, now, copy.status, body, note, until, copy.failures, failing_since)
    file, licence = licence_of(file)
    return file if file.note else file._replace(valid_until=min(until, now + licence.max_age_s))


def licence_unasked(url: str, why: str, *, settings: RobotsSettings, previous: SiteFile | None, now: float) -> SiteFile:
    """The row of a licence that was not requested for now, for the reason ``why``: a temporary failure."""
    failed = Failed(url, now, now, kind=ErrorKind.TIMEOUT, detail=why)
    return licence_file(failed, url, settings=settings, previous=previous)


def licence_of(file: SiteFile) -> tuple[SiteFile, Licence]:
    """The licence in a row; one that cannot be read gets a note."""
    if file.note:
        return file, NO_LICENCE
    try:
        return file, read_licence(file.body)
    except NotALicence as error:
        return file._replace(note=shown(str(error))), NO_LICENCE


def _as_robots_copy(file: SiteFile) -> RobotsCopy:
    """A row as the copy of a robots.txt, which the rules for failures take."""
    action = RobotsAction.PARSE if file.failing_since is None else RobotsAction.DEFER
    until = file.valid_until or 0.0
    return RobotsCopy(
        action, file.status, file.fetched_at, until, failures=file.failures, failing_since=file.failing_since
    )


def _rank(words: tuple[str, ...], given: Iterable[str]) -> int:
    """How special the most special of ``words`` among those ``given`` is; -1 if there is none."""
    return max((words.index(word) for word in given if word in words), default=-1)


def _preference(category: str, value: str, text: str) -> Preference:
    return Preference(Scheme.RSL.value, category, shown(value)[:100], SOURCE, None, shown(f"License: {text}"))
