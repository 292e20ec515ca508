"""Interpret the answer to a request for /robots.txt: the copy in force, and the time until which it holds.

Sources: the 1996 draft, 3.1 and 3.4; RFC 9309, 2.3 and 2.4; RFC 9111, 4.2; ``docs/protocols.md``, section 1, "What the
response to /robots.txt means" and "Freshness".
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import assert_never

from msgspec.structs import replace

from crawler import url
from crawler.dates import http_date
from crawler.fields.declaration import setting
from crawler.fields.kinds import (
    DURATIONS,
    FLAG,
    MORE_THAN_0_SECONDS,
    SECONDS,
    Form,
    ValueKind,
    one_of,
    read_texts,
)
from crawler.formatting import duration
from crawler.model import (
    Answer,
    Failed,
    Fetched,
    FetchResult,
    Headers,
    NotModified,
    Reading,
    Redirected,
    RobotsAction,
    RobotsCopy,
    header,
    header_values,
)
from crawler.reasons import ErrorKind, ReasonCode
from crawler.robots.http_seconds import MAX_SECONDS, delta_seconds, retry_after_s
from crawler.robots.text import cut_note, notes, octets_read, whole_lines
from crawler.terminal_text import shown

_DAY_S = 86_400.0
_SHOWN_CHARS = 100
_GZIP = b"\x1f\x8b"
_FRESH_S = {Reading.STRICT: 7 * _DAY_S, Reading.DRAFT1996: 7 * _DAY_S, Reading.RFC9309: _DAY_S}
_FRESH_MAX_S = {Reading.STRICT: MAX_SECONDS, Reading.DRAFT1996: MAX_SECONDS, Reading.RFC9309: _DAY_S}

_RESTRICTING = frozenset({401, 403})
_TEMPORARY = frozenset({408, 425, 429})
_CONTENT_RANGE = re.compile(r"bytes[ \t]+0-([0-9]{1,18})/([0-9]{1,18})", re.IGNORECASE)
_DIRECTIVE = re.compile(r'([A-Za-z-]+)(?:[ \t]*=[ \t]*("[^"]*"|[^", \t]+))?')

#: Actions with a lasting meaning, which ``stale_if_error`` may prolong.
_LASTING = frozenset({RobotsAction.PARSE, RobotsAction.FREE, RobotsAction.RESTRICTED})


#: Tokens by which owners refuse the training of models today: two that are no robots, and robots that fetch for it.
OPT_OUT_TOKENS = tuple(
    f"train-ai={token}"
    for token in ("Google-Extended", "Applebot-Extended", "GPTBot", "ClaudeBot", "CCBot", "MistralAI-Training")
)
_POLICY_TOKEN = re.compile(r"(?:train-ai|ai-input|search)=[A-Za-z0-9_-]+")


def _policy_tokens(value: object) -> tuple[str, ...]:
    texts = read_texts(value)
    for text in texts:
        if not _POLICY_TOKEN.fullmatch(text):
            raise ValueError(f"{text!r} is not PURPOSE=TOKEN, such as train-ai=ExampleBot")
    return texts


POLICY_TOKENS = ValueKind('a list of PURPOSE=TOKEN, such as ["train-ai=ExampleBot"]', Form.LIST, _policy_tokens)


@dataclass(frozen=True, slots=True)
class RobotsSettings:
    """How robots.txt is read, and how long the crawler waits for it. Times in seconds."""

    reading: Reading = setting(
        "reading",
        Reading.STRICT,
        one_of(Reading),
        "How robots.txt is read.",
        '"draft1996": the first matching line decides. "rfc9309": the longest matching line decides. "strict": a '
        "URL is fetched only if both of these allow it, and if no line clearly meant to close it.",
        option="--reading",
    )
    tdmrep: bool = setting(
        "tdmrep",
        False,
        FLAG,
        "Ask each site for /.well-known/tdmrep.json after its robots.txt, and record what it says about text and "
        "data mining.",
        "It costs a request for each site and each robots.txt. Headers and tags of a page count before it.",
    )
    stale_if_error: bool = setting(
        "stale_if_error",
        False,
        FLAG,
        "While a site's robots.txt cannot be fetched, obey an earlier copy instead of leaving the site alone.",
    )
    give_up_after_s: float = setting(
        "give_up_after",
        30 * _DAY_S,
        SECONDS,
        "Give a site up if its robots.txt could not be fetched for this long.",
        decides=(ReasonCode.NO_NAME,),
    )
    unknown_host_after_s: float = setting(
        "unknown_host_after",
        3600.0,
        SECONDS,
        "Give a site up if the name servers said for this long that its name does not exist.",
        "A name that was registered a moment ago may be unknown to some name servers for minutes.",
        decides=(ReasonCode.NO_NAME,),
    )
    no_connection_after_s: float = setting(
        "no_connection_after",
        _DAY_S,
        SECONDS,
        "Give a site up if its host refused connections or did not answer for this long.",
        "Its URLs fail. Refreshing the host asks it again.",
    )
    min_fresh_s: float = 300.0  # without it, "no-cache" would double a site's load
    retry_first_s: float = setting(
        "retry_first",
        60.0,
        MORE_THAN_0_SECONDS,
        "The pause after a first failure to fetch robots.txt.",
        "Each further failure doubles it.",
    )
    retry_max_s: float = setting(
        "retry_max",
        _DAY_S,
        MORE_THAN_0_SECONDS,
        "The longest that the pause of retry_first grows to.",
    )
    rests_s: tuple[float, ...] = setting(
        "rests",
        (3600.0, _DAY_S, 7 * _DAY_S),
        DURATIONS,
        "How long a site rests that answers by walls, or refuses all its URLs: the first time, the second and so on.",
        "After each rest one URL is requested. If the site refuses that after the last rest, it is closed.",
    )
    usage_tokens: tuple[str, ...] = setting(
        "usage_tokens",
        ("train-ai=__usage_ai-training",),
        POLICY_TOKENS,
        "The policy tokens whose groups in robots.txt say for what pages may be used.",
        "Each is PURPOSE=TOKEN, and the purpose is train-ai, ai-input or search. A path that such a group closes is "
        "refused for that purpose (draft-kelley-aipref-training-preference-signal).",
        decides=(ReasonCode.PREFERENCE,),
    )
    opt_out_tokens: tuple[str, ...] = setting(
        "opt_out_tokens",
        OPT_OUT_TOKENS,
        POLICY_TOKENS,
        'The same of other robots, by whose groups owners refuse a purpose today; only for the reading "strict".',
        "An owner who closed a path to one of them for a purpose could mean every robot with this purpose.",
        decides=(ReasonCode.PREFERENCE,),
    )
    max_redirects: int = 10

    @property
    def policy_tokens(self) -> tuple[tuple[str, str], ...]:
        """The pairs of a category of preferences and a token that count in the reading."""
        more = self.opt_out_tokens if self.reading is Reading.STRICT else ()
        pairs = (text.split("=") for text in (*self.usage_tokens, *more))
        return tuple((category, token) for category, token in pairs)

    @property
    def max_bytes(self) -> int:
        """The octets of a file that are read."""
        return octets_read(self.reading)

    def patience_s(self, status: str) -> float:
        """How long a site may fail before it is given up, if its last failure was ``status``; in seconds."""
        limit_s: float = getattr(self, f"{self.limit_on(status)}_s")
        return min(limit_s, self.give_up_after_s)

    def limit_on(self, status: str) -> str:
        """The name of the setting that says how long a site may fail by ``status``."""
        if status == ErrorKind.DNS_NO_NAME:
            return "unknown_host_after"
        return "no_connection_after" if status in _NO_CONNECTION else "give_up_after"


#: The failures of a host that is not there, or does not answer.
_NO_CONNECTION = frozenset({ErrorKind.CONNECT, ErrorKind.TIMEOUT})


@dataclass(frozen=True, slots=True)
class Follow:
    """Fetch this canonical URL next. The file found there applies to the site first asked.

    On another site, :class:`crawler.engine.robots_cache.RobotsCache` decides whether the URL may be requested.
    """

    url: str


def interpret(
    answer: FetchResult,
    *,
    settings: RobotsSettings,
    previous: RobotsCopy | None,
    hops: int,
    seen: Collection[str],
    now: float,
) -> RobotsCopy | Follow:
    """The copy in force after ``answer``, or the next hop to fetch.

    ``previous`` is the site's copy so far, ``hops`` the number of redirects followed to this answer, ``seen`` the
    URLs asked on the way; the URL of ``answer`` may be missing from ``seen``. ``now`` is in seconds since the epoch.
    """
    asked = _Asked(settings, previous, hops, now)
    match answer:
        case Fetched():
            return asked.read(answer)
        case NotModified():
            return asked.renew(answer)
        case Redirected():
            return asked.follow(answer, seen)
        case Failed():
            return asked.fail(answer)
        case _:
            assert_never(answer)


def is_usable(copy: RobotsCopy) -> bool:
    """Whether a copy says which URLs of a site may be requested."""
    return copy.action in _LASTING


def shared(
    target: RobotsCopy, url: str, *, settings: RobotsSettings, previous: RobotsCopy | None, now: float
) -> RobotsCopy:
    """The copy of a site whose /robots.txt redirects to ``url`` on another site, of which ``target`` is the copy.

    It holds for as long as ``target``. If that is no usable answer (:func:`is_usable`), the site has none either: it is
    deferred until the target is asked again, or for longer. ``previous`` is the site's copy so far.
    """
    if target.action is RobotsAction.UNTRUSTED:
        return RobotsCopy(target.action, target.status, now, target.expires_at, note=f"{url}: {target.note}")
    if not is_usable(target):
        detail = f"{url} has no usable answer: {target.note or target.status}"
        asked_at = target.retry_at or target.expires_at
        return unanswered(detail, settings=settings, previous=previous, now=now, not_before=asked_at)
    return RobotsCopy(
        action=target.action,
        status=target.status,
        fetched_at=now,
        expires_at=target.expires_at,
        body=target.body,
        sha256=target.sha256,
        note=target.note,
    )


def unanswered(
    detail: str, *, settings: RobotsSettings, previous: RobotsCopy | None, now: float, not_before: float = 0.0
) -> RobotsCopy:
    """The copy of a site whose robots.txt redirects to another site that cannot be asked, for the reason ``detail``.

    The site is deferred as after a failure, and at least until ``not_before`` (epoch seconds).
    """
    nothing = Answer(url="", started_at=now, finished_at=now)
    copy = _Asked(settings, previous, 0, now).defer(nothing, "redirect", detail)
    if copy.action is not RobotsAction.DEFER or copy.retry_at is None or copy.retry_at >= not_before:
        return copy
    return replace(copy, retry_at=not_before, expires_at=not_before)


def freshness(headers: Headers, reading: Reading, settings: RobotsSettings, now: float) -> float:
    """The time at which a copy received with ``headers`` at ``now`` expires, in epoch seconds (RFC 9111, 4.2).

    The copy lasts at least ``min_fresh_s`` of the settings. Without directives it lasts for the reading's default time,
    which is also the longest time in the rfc9309 reading (RFC 9309, 2.4).
    """
    left_s = lifetime_left_s(headers, now)
    if left_s is None:
        left_s = _FRESH_S[reading]
    return now + max(settings.min_fresh_s, min(left_s, _FRESH_MAX_S[reading]))


def is_part(status: int, headers: Headers) -> bool:
    """Whether an answer holds only a part of the file: a 206 whose Content-Range does not cover the whole.

    The crawler never asks for a part, and cannot know what the rest closes (RFC 9110, 14.4 and 15.3.7).
    """
    if status != 206:
        return False
    given = [_CONTENT_RANGE.fullmatch(value.strip()) for value in header_values(headers, "content-range")]
    whole = len(given) == 1 and given[0] is not None and int(given[0][1]) + 1 == int(given[0][2])
    return not whole


def _unpacked(body: bytes, max_bytes: int, *, is_cut: bool) -> bytes | None:
    """Decompress gzip, up to one byte more than ``max_bytes``; None if the data are broken.

    ``is_cut``: the fetcher cut the body, so its end may be missing.
    """
    inflate = zlib.decompressobj(wbits=31)
    try:
        plain = inflate.decompress(body, max_bytes + 1)
    except zlib.error:
        return None
    return plain if inflate.eof or is_cut or len(plain) > max_bytes else None


@dataclass(frozen=True, slots=True)
class _Asked:
    """The circumstances of one answer."""

    settings: RobotsSettings
    previous: RobotsCopy | None
    hops: int
    now: float

    def read(self, answer: Fetched) -> RobotsCopy:
        """2xx: parse and obey, unless it is a part of a file. Of a body above the limit only whole lines are kept."""
        if is_part(answer.status, answer.headers):
            ranges = shown(", ".join(header_values(answer.headers, "content-range")), _SHOWN_CHARS)
            return self.defer(answer, "206", f"only a part of the file was sent ({ranges or 'it does not say which'})")
        came = answer.body
        packed = came.startswith(_GZIP)
        if packed:
            plain = _unpacked(came, self.settings.max_bytes, is_cut=answer.truncated)
            if plain is None:
                return self.defer(answer, "encoding", "the body is undeclared gzip, and it is broken or cut short")
            came = plain
        body = whole_lines(came, self.settings.max_bytes, cut=answer.truncated)
        said = (*notes(body), *(["gzip that was not declared; decompressed and read"] if packed else []))
        if len(body) < len(came) or answer.truncated:
            said = (*said, cut_note(body, self.settings.max_bytes))
        return self._lasting(RobotsAction.PARSE, answer, str(answer.status), "; ".join(said), body)

    def renew(self, answer: NotModified) -> RobotsCopy:
        """304: renew the previous copy. The 304 states its lifetime again (RFC 9110, 15.4.5)."""
        if self.hops or self.previous is None or self.previous.action is not RobotsAction.PARSE:
            return self.defer(answer, "304", "not modified, but there is no earlier copy to renew")
        return replace(
            self.previous,
            fetched_at=self.now,
            expires_at=freshness(answer.headers, self.settings.reading, self.settings, self.now),
            etag=header(answer.headers, "etag") or self.previous.etag,
            last_modified=header(answer.headers, "last-modified") or self.previous.last_modified,
            failures=0,
            failing_since=None,
            retry_at=None,
            note=self.previous.note if self.previous.body is None else "; ".join(notes(self.previous.body)),
        )

    def follow(self, answer: Redirected, seen: Collection[str]) -> RobotsCopy | Follow:
        """3xx: follow to any host, but neither in a circle nor beyond ``max_redirects`` (1996 draft, 3.1)."""
        try:
            target = url.canonicalise(answer.location, answer.url)
        except url.NotCrawlable as error:
            return self.defer(answer, "bad redirect", f"redirected to {error}")
        if target == answer.url or target in seen:
            return self.defer(answer, "redirect loop", f"redirected in a circle, to {target}")
        if self.hops >= self.settings.max_redirects:
            return self.defer(answer, "too many redirects", f"more than {self.settings.max_redirects} redirects")
        return Follow(target)

    def fail(self, answer: Failed) -> RobotsCopy:
        """An error status decides without its body, which is never parsed. No answer at all defers the site.

        A certificate that is not valid is not waited for: its owner renews it within a day, or not soon.
        """
        if answer.kind is ErrorKind.ADDRESS and self.hops == 0:
            again_at = self.now + self.settings.retry_max_s  # the name may resolve to another address later
            return RobotsCopy(RobotsAction.UNREACHABLE, "address", self.now, again_at, note=answer.error.sentence)
        if answer.kind is ErrorKind.CERTIFICATE:
            again_at = self.now + self.settings.retry_max_s  # its owner may renew it
            note = answer.error.sentence
            return RobotsCopy(RobotsAction.UNTRUSTED, "certificate", self.now, again_at, note=note)
        if answer.kind is ErrorKind.WALL:
            return self.rest(answer)
        status = answer.status
        if answer.kind is not ErrorKind.HTTP or status is None:
            return self.defer(answer, answer.kind.value, answer.error.sentence)
        if not 400 <= status <= 499 or status in _TEMPORARY:
            return self.defer(answer, str(status), answer.error.sentence)
        if status in _RESTRICTING and self.settings.reading is not Reading.RFC9309:
            return self._lasting(RobotsAction.RESTRICTED, answer, str(status))
        return self._lasting(RobotsAction.FREE, answer, str(status))

    def rest(self, answer: Failed) -> RobotsCopy:
        """A wall is no robots.txt, whatever its status: nothing of the site is requested, and no earlier copy is used.

        A restriction by 401 or 403 ends before the site is asked again. After the last rest the site is closed: only an
        operator has it asked again.
        """
        rests_s, before = self.settings.rests_s, self.previous
        failures = before.failures + 1 if before is not None and before.status == ErrorKind.WALL else 1
        if failures > len(rests_s):
            until = self.now + MAX_SECONDS
            return self._failing(RobotsAction.GIVEN_UP, ErrorKind.WALL, until, failures, answer.error.sentence)
        retry_at = self.now + rests_s[failures - 1]
        if answer.status in _RESTRICTING and self.settings.reading is not Reading.RFC9309:
            retry_at = max(retry_at, freshness(answer.headers, self.settings.reading, self.settings, self.now))
        return self._failing(RobotsAction.DEFER, ErrorKind.WALL, retry_at, failures, answer.error.sentence)

    @property
    def _failing_since(self) -> float:
        """When the failures began of which this answer is the last."""
        before = self.previous
        return self.now if before is None or before.failing_since is None else before.failing_since

    def _failing(self, action: RobotsAction, status: str, until: float, failures: int, note: str) -> RobotsCopy:
        """A copy that says nothing about the URLs of the site."""
        return RobotsCopy(
            action=action,
            status=str(status),
            fetched_at=self.now,
            expires_at=until,
            failures=failures,
            failing_since=self._failing_since,
            retry_at=until if action is RobotsAction.DEFER else None,
            note=note,
        )

    def _lasting(
        self, action: RobotsAction, answer: Answer, status: str, note: str = "", body: bytes | None = None
    ) -> RobotsCopy:
        """A copy that holds until it expires.

        Validators are kept only for a file found at the site itself. A file found behind a redirect is fetched without
        validators: a site that now has an older file of its own would answer that file's date with 304.
        """
        own = body is not None and self.hops == 0
        return RobotsCopy(
            action=action,
            status=status,
            fetched_at=self.now,
            expires_at=freshness(answer.headers, self.settings.reading, self.settings, self.now),
            body=body or b"",
            sha256=b"" if body is None else sha256(body).digest(),
            etag=header(answer.headers, "etag") if own else None,
            last_modified=header(answer.headers, "last-modified") if own else None,
            note=note,
        )

    def defer(self, answer: Answer, status: str, detail: str) -> RobotsCopy:
        """A temporary failure: try again after a pause that doubles, or longer if ``Retry-After`` asks for it.

        A name that does not exist is given up sooner, once the name servers have said so twice in a row: the pauses
        double, so the two answers are about half of ``unknown_host_after_s`` apart.
        """
        settings, previous = self.settings, self.previous
        failures = previous.failures + 1 if previous else 1
        since = self._failing_since
        is_repeated = since == self.now or (previous is not None and previous.status == status)
        patience_s = settings.patience_s(status) if is_repeated else settings.give_up_after_s
        if self.now - since >= patience_s:
            note = f"no usable answer for {duration(self.now - since)}; the last: {detail or status}"
            return self._failing(RobotsAction.GIVEN_UP, status, self.now + settings.retry_max_s, failures, note)
        pause_s = min(settings.retry_first_s * 2.0 ** min(failures - 1, 64), settings.retry_max_s)
        retry_at = self.now + max(pause_s, retry_after_s(answer.headers, self.now) or 0.0)
        if settings.stale_if_error and previous is not None and previous.action in _LASTING:
            note = f"kept in force past its expiry because the site fails: {detail or status}"
            return replace(
                previous,
                fetched_at=self.now,
                expires_at=retry_at,
                failures=failures,
                failing_since=since,
                retry_at=retry_at,
                note=note,
            )
        return self._failing(RobotsAction.DEFER, status, retry_at, failures, detail)


def lifetime_left_s(headers: Headers, now: float) -> float | None:
    """The seconds from ``now`` for which a response stays fresh: 0 or less if stale, None if the headers do not say.

    ``max-age`` wins over ``Expires``. Unreadable values count as stale (RFC 9111, 4.2.1 and 5.3).
    """
    directives: dict[str, str] = {}
    for value in header_values(headers, "cache-control"):
        for match in _DIRECTIVE.finditer(value):
            directives.setdefault(match[1].lower(), match[2] or "")
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    date = http_date(header(headers, "date") or "")
    if "max-age" in directives:
        lifetime_s = delta_seconds(directives["max-age"]) or 0.0
    elif (expires := header(headers, "expires")) is not None:
        end = http_date(expires)
        lifetime_s = 0.0 if end is None else end - (now if date is None else date)
    else:
        return None
    apparent_age_s = 0.0 if date is None else max(0.0, now - date)
    return lifetime_s - max(apparent_age_s, delta_seconds(header(headers, "age") or "") or 0.0)
