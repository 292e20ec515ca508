"""What ``crawler plan`` says that a run would refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.page.headers import PDF
from crawler.session import refusals as module
from crawler.session.refusals import at_refused_addresses, refusals
from crawler.settings.settings import Settings

URL = "https://a.example/"


def told(settings: Settings, *seeds: str) -> list[str]:
    return [str(error) for error in refusals(settings, seeds, {})]


def test_each_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Settings()
    known = replace(plain, identity=replace(plain.identity, contact="https://b.example/"))
    assert told(known, URL) == []
    (no_contact,) = told(plain, URL)
    assert "identity.contact" in no_contact
    documents = replace(known, fetch=replace(plain.fetch, types=(*plain.fetch.types, PDF)))
    assert told(documents, URL) == []
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    (missing,) = told(documents, URL)
    assert "pypdfium2" in missing
    assert "[documents]" in missing


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://localhost/", "http://[::1]/", "http://b.test/"])
def test_private_addresses_need_their_setting(url: str) -> None:
    plain = Settings()
    fetch = replace(plain.fetch, resolve=(("b.test", "192.168.0.1"),))
    known = replace(plain, identity=replace(plain.identity, contact="https://b.example/"), fetch=fetch)
    assert at_refused_addresses(known, [URL, url]) == [url]
    assert told(known, URL, url) == [], "a run begins without them"
    assert at_refused_addresses(replace(known, fetch=replace(fetch, allow_private=True)), [URL, url]) == []
