"""Tells a wall from a page: an answer of a bot defence in place of the document that was asked for.

A wall is a challenge that only a browser with JavaScript can pass, or the refusal of a service in front of the site.
Its status may be 200. Two kinds of evidence count:

* a header field that the service sends with walls only. Fields that it sends with every answer, such as ``x-datadome:
  protected`` or ``x-cdn: Incapsula``, count with the status of a refusal or not at all;
* at least two independent cues in the mark-up: elements, their attributes, and what a script begins with. A title is no
  cue. Text is none either: a document about walls shows their mark-up escaped, or within the data of a script.

Some services inject scripts into ordinary pages (``/cdn-cgi/challenge-platform/scripts/jsd/``, the sensors of HUMAN and
DataDome, the SDK of AWS WAF). They are no cue. ``tests/conformance/walls.jsonl`` names the source of each marker.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from crawler.model import Headers, header, header_values

#: The most octets of a wall. A longer document is none.
MAX_WALL_BYTES = 1 << 16
#: The most links of a wall: it leads nowhere but to its makers.
MAX_WALL_LINKS = 12
#: The statuses of walls whose bodies are worth reading. Services use others only with a header field.
REFUSING = frozenset({401, 403, 405, 406, 429, 503})

_BLOCKED = frozenset({403, 429})
#: Field and value of a service: the field says that this answer is a wall.
_FIELDS = (
    ("cf-mitigated", ("challenge",), "Cloudflare"),
    ("x-amzn-waf-action", ("challenge", "captcha"), "AWS WAF"),
    ("x-vercel-mitigated", ("challenge", "deny"), "Vercel"),
    ("x-dd-b", (), "DataDome"),  # any value: 1 to 3 name the kind of the wall
)
_FIELD_NAMES = frozenset(("set-cookie", "x-datadome", "x-px-block", *(name for name, _, _ in _FIELDS)))


class Wall(NamedTuple):
    """A wall: the service that built it, and the evidence."""

    by: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.by} ({self.evidence})"


class _Cue(NamedTuple):
    """A sign of a wall in the mark-up: ``sign`` in the start tag of an element, or in a script from its first octet."""

    name: str
    sign: bytes
    in_script: bool = False


class _Marks(NamedTuple):
    """The cues of the walls of a service. ``needle`` is in each of them; ``first`` and one of ``others`` must hold."""

    by: str
    needle: bytes
    first: _Cue
    others: tuple[_Cue, ...]


def _tag(name: str, pattern: str) -> _Cue:
    return _Cue(name, b"(?i)" + pattern.encode())


def _script(name: str, pattern: str) -> _Cue:
    return _Cue(name, b"(?s)" + pattern.encode(), in_script=True)


#: Behind the start of a script, before what it is recognised by: comments and the head of a function.
_HEAD = r"\s*(?:/\*(?:(?!\*/).)*\*/\s*)?(?:\(?function\s*\(\)\s*\{\s*)?"

_MARKS = (
    _Marks(
        "Cloudflare",
        b"window._cf_chl_opt",
        _script("window._cf_chl_opt", rf"{_HEAD}window\._cf_chl_opt\s*=\s*\{{"),
        (
            _script("orchestrate script", r"[^<]*/cdn-cgi/challenge-platform/h/[a-z]/orchestrate/"),
            _tag("orchestrate script", r"<script[^>]*/cdn-cgi/challenge-platform/h/[a-z]/orchestrate/"),
            _tag("#challenge-error-text", r"<[a-z]+[^>]*\sid=[\"']?challenge-error-text\b"),
        ),
    ),
    _Marks(
        "AWS WAF",
        b"window.gokuProps",
        _script(
            "window.gokuProps",
            rf"{_HEAD}(?:window\.awsWafCookieDomainList\s*=\s*\[[^\]]*\];?\s*)?window\.gokuProps\s*=",
        ),
        (
            _tag("awswaf.com script", r"<script[^>]*\ssrc=[\"']?https://[^\"'> ]*\.awswaf\.com/"),
            _tag("#challenge-container", r"<div[^>]*\sid=[\"']?(?:challenge|captcha)-container\b"),
        ),
    ),
    _Marks(
        "DataDome",
        b"captcha-delivery.com",
        _script("var dd", rf"{_HEAD}(?:var\s+)?dd\s*=\s*\{{\s*[\"']rt[\"']\s*:"),
        (
            _tag(
                "captcha-delivery.com",
                r"<(?:script|iframe)[^>]*\ssrc=[\"']?https://(?:ct|geo)\.captcha-delivery\.com/",
            ),
        ),
    ),
    _Marks(
        "HUMAN",
        b"window._pxUuid",
        _script("window._pxUuid", rf"{_HEAD}window\._px[A-Za-z]+\s*=(?:(?!</).){{0,2000}}window\._pxUuid\s*="),
        (
            _tag("#px-captcha", r"<div[^>]*\sid=[\"']?px-captcha\b"),
            _tag("captcha.js", r"<script[^>]*/captcha\.js\?a="),
        ),
    ),
    _Marks(
        "Anubis",
        b"/.within.website/x/",
        _tag("#anubis_challenge", r"<script[^>]*\sid=[\"']?anubis_(?:challenge|version)\b"),
        (_tag("/.within.website/", r"<[a-z]+[^>]*/\.within\.website/x/(?:cmd/anubis|xess)/"),),
    ),
    _Marks(
        "Imperva",
        b"_Incapsula_Resource",
        _tag("incident", r"<iframe[^>]*\ssrc=[\"']?/_Incapsula_Resource\?[^\"'> ]*incident_id="),
        (_tag("#main-iframe", r"<iframe[^>]*\sid=[\"']?main-iframe\b"),),
    ),
    _Marks(
        "Imperva",
        b"_Incapsula_Resource",
        _tag("script with two hashes", r"<script[^>]*/_Incapsula_Resource\?SWJIYLWA=[0-9a-f]{32},[0-9a-f]{32}"),
        (_tag("empty body", r"<body[^>]*>\s*</body"),),
    ),
    _Marks(
        "Akamai",
        b"sec-if-cpt-container",
        _tag("#sec-if-cpt-container", r"<div[^>]*\sid=[\"']?sec-if-cpt-container\b"),
        (_tag("behavioral-content", r"<[a-z]+[^>]*\s(?:id|class)=[\"']?[^\"'>]*behavioral-content"),),
    ),
    _Marks(
        "DDoS-Guard",
        b"link-ddg",
        _tag("#link-ddg", r"<[a-z]+[^>]*\sid=[\"']?link-ddg\b"),
        (
            _tag("captcha script", r"<script[^>]*\ssrc=[\"']?https://www\.(?:recaptcha\.net|google\.com)/recaptcha/"),
            _tag("ddos-guard script", r"<script[^>]*\ssrc=[\"']?[^\"'> ]*ddos-guard"),
        ),
    ),
    _Marks(
        "Fastly",
        b"/_fs-ch-",
        _tag("/_fs-ch-…/assets/", r"<(?:img|link)[^>]*=[\"']?/_fs-ch-[A-Za-z0-9_-]+/assets/"),
        (_tag("/_fs-ch- script", r"<script[^>]*\ssrc=[\"']?/_fs-ch-[A-Za-z0-9_-]+/"),),
    ),
)
#: One of these is in every wall that is known by its body, and in almost no page. So the patterns are compiled when the
#: first of them is found.
_NEEDLES = sorted({marks.needle for marks in _MARKS})
#: What a browser does not read as mark-up: comments, and the contents of elements with text only.
_NOT_MARKUP = (
    rb"(?is)<!--.*?(?:-->|\Z)|<(textarea|template|xmp|style|title|noembed|plaintext)\b[^>]*>.*?(?:</\1\s*>|\Z)"
)
_SCRIPT = rb"(?is)<script\b([^>]*)>(.*?)(?:</script\s*>|\Z)"
_DATA_SCRIPT = rb"(?i)\stype=[\"']?(?!module|text/javascript|application/javascript)[a-z]"


def wall_in_headers(status: int, headers: Headers) -> Wall | None:
    """The wall that the header fields of an answer say it is."""
    if _FIELD_NAMES.isdisjoint([name.lower() for name, _ in headers]):
        return None
    for name, values, by in _FIELDS:
        value = header(headers, name)
        if value is not None and (not values or value.strip().lower() in values):
            return Wall(by, f"{name}: {value.strip()[:40]}")
    if status in _BLOCKED and header(headers, "x-datadome") is not None:
        return Wall("DataDome", f"x-datadome with {status}")
    if status in _BLOCKED and header(headers, "x-px-block") is not None:
        return Wall("HUMAN", f"x-px-block with {status}")
    for cookie in header_values(headers, "set-cookie"):
        if "techaro.lol-anubis-" in cookie.partition("=")[0]:
            return Wall("Anubis", "cookie techaro.lol-anubis")
        if status in _BLOCKED and cookie.lstrip().startswith("_px"):
            return Wall("HUMAN", f"cookie _px with {status}")
    return None


def wall_in_body(body: bytes) -> Wall | None:
    """The wall that the mark-up of an HTML document says it is."""
    if len(body) > MAX_WALL_BYTES or not any(needle in body for needle in _NEEDLES):
        return None
    markup = re.sub(_NOT_MARKUP, b"", body)
    found = re.finditer(_SCRIPT, markup)
    scripts = [script[2] for script in found if re.search(_DATA_SCRIPT, script[1]) is None]
    tags = re.sub(_SCRIPT, rb"<script\1></script>", markup)
    for marks in _MARKS:
        if marks.needle in body and _holds(marks.first, tags, scripts):
            second = next((cue for cue in marks.others if _holds(cue, tags, scripts)), None)
            if second is not None:
                return Wall(marks.by, f"{marks.first.name} and {second.name} in the mark-up")
    return None


def _holds(cue: _Cue, tags: bytes, scripts: list[bytes]) -> bool:
    if cue.in_script:
        return any(re.match(cue.sign, script) for script in scripts)
    return re.search(cue.sign, tags) is not None
