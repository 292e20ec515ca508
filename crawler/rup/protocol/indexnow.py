"""Submissions of IndexNow: a site names URLs that have changed, and proves by a key file that it speaks for its host.

Source: https://www.indexnow.org/documentation, as of November 2026. A GET has the parameters ``url``, ``key`` and
``keyLocation``, a POST a JSON object with ``host``, ``key``, ``keyLocation`` and ``urlList``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from crawler.url import NotCrawlable, canonicalise, host_of, path_of, split

#: URLs in one submission.
MAX_URLS = 10_000
#: The octets of a key file that are read: a key has 128 characters at most.
MAX_KEY_BYTES = 1_024
_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")


class Refused(ValueError):
    """A submission that breaks the protocol; ``status`` is the answer to it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Submission(NamedTuple):
    """URLs of ``host`` that have changed; they count when ``key_url`` answers by ``key``. All URLs are canonical."""

    host: str
    key: str
    key_url: str
    urls: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The submission as a POST has it."""
        return {"host": self.host, "key": self.key, "keyLocation": self.key_url, "urlList": list(self.urls)}

    def is_proven_by(self, body: bytes) -> bool:
        """Whether the key file with this content proves the submission."""
        return body.removeprefix(b"\xef\xbb\xbf").strip() == self.key.encode()


def read_get(query: Mapping[str, str]) -> Submission:
    """The submission in the parameters of a GET. Raises :class:`Refused`."""
    said = {"key": query.get("key"), "urlList": [query.get("url")]}
    return read_post(said if "keyLocation" not in query else said | {"keyLocation": query["keyLocation"]})


def read_post(said: object) -> Submission:
    """The submission in the JSON of a POST. Raises :class:`Refused`."""
    if not isinstance(said, Mapping):
        raise Refused(400, "not a JSON object")
    key, named = said.get("key"), said.get("urlList")
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise Refused(400, "key: 8 to 128 letters, digits or dashes")
    if not isinstance(named, list) or not named or len(named) > MAX_URLS:
        raise Refused(400, f"urlList: 1 to {MAX_URLS:,} URLs")
    urls = tuple(dict.fromkeys(map(_url, named)))
    host = said.get("host", host_of(urls[0]))
    if not isinstance(host, str):
        raise Refused(400, "host: a text")
    host = host.strip().lower()
    key_url = _url(said.get("keyLocation", f"{split(urls[0]).site}/{key}.txt"))
    folder = path_of(key_url).rpartition("/")[0] + "/"
    if host_of(key_url) != host or any(host_of(url) != host or not path_of(url).startswith(folder) for url in urls):
        raise Refused(422, "a URL that is not of the host, or not below the folder of the key file")
    return Submission(host, key, key_url, urls)


def _url(value: object) -> str:
    if not isinstance(value, str):
        raise Refused(400, "a URL that is no text")
    try:
        return canonicalise(value)
    except NotCrawlable as error:
        raise Refused(400, f"a URL that is none: {error}") from None
