"""Logs for the tests of the audit's rules, made by hand; times in seconds from the first run's start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from crawler.audit.checks import Check, Violation
from crawler.audit.records import Event, LoggedRequest, RobotsResponse, RobotsVersion, RunRecord
from crawler.audit.replay import Replay
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.settings.settings import Identity, Settings

SITE = "http://a.test"
DAY_S = 86_400.0
CLOSED = b"User-agent: *\nDisallow: /closed/\n"
TERMS = RunRecord(
    run=1,
    started_at=0.0,
    finished_at=None,
    ended_by=None,
    crawler_version="1.0",
    settings=Settings(
        identity=Identity("FigTree", "https://example.org/"),
        politeness=PolitenessSettings(delay_s=2.0, slow_factor=5.0, slow_cap_s=30.0, backoff_first_s=10.0),
        fetch=RequestSettings(resolve=(("home.test", "127.0.0.1"),)),
    ),
)


def sent(
    at: float, path: str = "/", *, took_s: float = 0.1, site: str = SITE, site_id: int = 1, **more: object
) -> LoggedRequest:
    request = LoggedRequest(int(at * 1000), 1, site_id, site, path, "page", at, at + took_s, 200, None, 100, None)
    return request._replace(**more)  # type: ignore[arg-type]


def robots(at: float, *, path: str = "/robots.txt", **more: object) -> LoggedRequest:
    return sent(at, path, purpose="robots", **more)  # type: ignore[arg-type]


def version(
    at: float,
    body: bytes | None = CLOSED,
    *,
    until: float | None = None,
    action: str = "parse",
    by: str = f"{SITE}/robots.txt",
    headers: Mapping[str, str] | None = None,
) -> RobotsVersion:
    """A version of the first site that came at ``at``; its text is numbered by its content."""
    text, digest = (None, "") if body is None else (hash(body), sha256(body).hexdigest())
    said = tuple((headers or {}).items())
    return RobotsVersion(at, at + 7 * DAY_S if until is None else until, action, "200", text, digest, 1, by, said)


def under(terms: RunRecord = TERMS, **robots: object) -> RunRecord:
    """A run with other settings for robots.txt."""
    return _with(terms, "robots", robots)


def paced(terms: RunRecord = TERMS, **politeness: object) -> RunRecord:
    """A run with other settings for pauses."""
    return _with(terms, "politeness", politeness)


def called(terms: RunRecord = TERMS, **identity: object) -> RunRecord:
    """A run with another name or contact."""
    return _with(terms, "identity", identity)


def _with(terms: RunRecord, section: str, values: Mapping[str, object]) -> RunRecord:
    changed = {section: replace(getattr(terms.settings, section), **values)}
    return replace(terms, settings=replace(terms.settings, **changed))


def events(
    requests: Sequence[LoggedRequest],
    versions: Sequence[RobotsVersion] | None,
    there: Sequence[RobotsVersion] = (),
) -> list[Event]:
    """The events, in order. Without ``versions``, every answer of 200 brought the same file.

    ``there`` are the versions of the second site.
    """
    happened: list[tuple[float, int, Event]] = []
    names = {request.site_id: request.site for request in requests}
    for request in requests:
        happened.append((request.started_at, 2, Event("test", request.site_id, request.site, request)))
        if request.purpose == "robots":
            of = request.for_site_id or request.site_id
            happened.append((request.finished_at, 0, Event("test", of, names[of], RobotsResponse(request))))
            if versions is None and request.status == 200:
                came = version(request.finished_at, by=request.url)._replace(run=request.run)
                happened.append((request.finished_at, 1, Event("test", of, names[of], came)))
    happened += [(came.valid_from, 1, Event("test", 1, SITE, came)) for came in versions or ()]
    happened += [(came.valid_from, 1, Event("test", 2, names[2], came)) for came in there]
    return [event for *_, event in sorted(happened, key=lambda what: what[:2])]


def judged(
    *requests: LoggedRequest,
    versions: Sequence[RobotsVersion] | None = None,
    there: Sequence[RobotsVersion] = (),
    terms: Sequence[RunRecord] = (TERMS,),
    texts: Sequence[bytes] = (CLOSED,),
) -> tuple[list[Violation], Replay]:
    replay = Replay({run.run: run for run in terms})
    return list(replay.replay(events(requests, versions, there), {hash(text): text for text in texts})), replay


def breaches(*requests: LoggedRequest, **more: object) -> list[Check]:
    return [found.check for found in judged(*requests, **more)[0]]  # type: ignore[arg-type]
