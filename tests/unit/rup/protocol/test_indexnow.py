"""Submissions of IndexNow, as the protocol's documentation has them."""

from __future__ import annotations

import pytest

from crawler.rup.protocol.indexnow import MAX_URLS, Refused, Submission, read_get, read_post

KEY = "73134416ae45434d98edc086e0bf6740"
HOST = "www.example.com"
URLS = [f"https://{HOST}/url1", f"https://{HOST}/folder/url2"]
SET = {"host": HOST, "key": KEY, "urlList": URLS}


def test_one_url_and_a_set_of_urls() -> None:
    one = read_get({"url": f"https://{HOST}/product.html", "key": KEY})
    assert one == Submission(HOST, KEY, f"https://{HOST}/{KEY}.txt", (f"https://{HOST}/product.html",))
    several = read_post(SET)
    assert several == Submission(HOST, KEY, f"https://{HOST}/{KEY}.txt", tuple(URLS))
    assert read_post(several.as_json()) == several
    located = read_post({**SET, "keyLocation": f"https://{HOST}/folder/key.txt", "urlList": URLS[1:]})
    assert located.key_url == f"https://{HOST}/folder/key.txt"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"key": "short"}, 400),
        ({"key": "with blanks in it"}, 400),
        ({"key": None}, 400),
        ({"urlList": []}, 400),
        ({"urlList": [URLS[0]] * (MAX_URLS + 1)}, 400),
        ({"urlList": [1]}, 400),
        ({"urlList": ["ftp://x"]}, 400),
        ({"host": 3}, 400),
        ({"host": "other.example"}, 422),
        ({"urlList": [URLS[0], "https://other.example/"]}, 422),
        ({"keyLocation": "https://other.example/key.txt"}, 422),
        ({"keyLocation": f"https://{HOST}/folder/key.txt"}, 422),
    ],
)
def test_what_breaks_the_protocol_is_refused(changes: dict[str, object], status: int) -> None:
    with pytest.raises(Refused) as refused:
        read_post(SET | changes)
    assert refused.value.status == status


def test_the_key_file_holds_the_key_alone() -> None:
    asked = read_post(SET)
    proofs = {body: asked.is_proven_by(body) for body in (KEY.encode(), f"\ufeff{KEY}\r\n".encode(), b"x", b"<html>")}
    assert list(proofs.values()) == [True, True, False, False]
    with pytest.raises(Refused):
        read_post([])
