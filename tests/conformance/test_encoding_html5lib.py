"""The encoding tests of html5lib, all of which the sniffing of a page must agree with, but for one named difference.

Source: https://github.com/html5lib/html5lib-tests, ``encoding/*.dat`` (MIT licence, copyright James Graham, Geoffrey
Sneddon and other contributors), converted to one JSON object a line.
"""

import json
from base64 import b64decode
from pathlib import Path

import pytest

from crawler.page.charset import encoding_of, in_utf8
from crawler.page.tags import read_tags

_FILE = Path(__file__).with_name("encoding_html5lib.jsonl")
CASES = [json.loads(line) for line in _FILE.read_text("utf-8").splitlines()]


def test_all_cases_are_there() -> None:
    assert len(CASES) == 82


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_encoding_of_a_page(case: dict[str, str]) -> None:
    body = b64decode(case["html_b64"])
    found = read_tags(body, None).encoding
    if found == "utf-8" and body.isascii():
        # A page that declares nothing is UTF-8 here if its bytes are, else windows-1252: most such pages are UTF-8
        # today, and the standard leaves the default to the reader. Of ASCII, both make the same text.
        assert encoding_of(case["encoding"]) in ("utf-8", "windows-1252")
        assert in_utf8(body, "windows-1252") == body
    else:
        assert found == encoding_of(case["encoding"])
