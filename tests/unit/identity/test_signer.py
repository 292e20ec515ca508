"""Signed requests, judged by an independent verifier, and the keys of a crawl that runs for long."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.identity.directory import directory
from crawler.identity.keys import DIRECTORY_MAX_AGE_S, create, read, rotated, write
from crawler.identity.signer import KeyFile, WebBotAuth
from crawler.settings.settings import SignatureForm
from tests.botgate import needs_botgate, verdict

NOW = int(SystemClock().now())
AGENT = "https://crawler.example"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create(tmp_path / "identity.jwks", NOW - 1)
    return tmp_path / "identity.jwks"


def signer(path: Path, form: SignatureForm = SignatureForm.DICTIONARY) -> WebBotAuth:
    return WebBotAuth(KeyFile(path), AGENT, form, 60)


def keyid(headers: dict[str, str]) -> str:
    found = re.search('keyid="([^"]+)"', headers["Signature-Input"])
    assert found is not None
    return found[1]


@needs_botgate
@pytest.mark.parametrize("form", SignatureForm)
@pytest.mark.parametrize("authority", ["example.org", "shop.example:8443", "[2001:db8::1]:8080"])
def test_botgate_says_valid(path: Path, form: SignatureForm, authority: str) -> None:
    headers = signer(path, form).headers(authority, SystemClock().now())
    assert verdict(path.parent, directory(read(path)), authority, headers, form) == ("valid", set())


@needs_botgate
def test_botgate_says_invalid_for_another_host_and_for_another_agent(path: Path) -> None:
    form, keys = SignatureForm.DICTIONARY, directory(read(path))
    headers = signer(path, form).headers("example.org", SystemClock().now())
    assert verdict(path.parent, keys, "example.net", headers, form)[0] == "invalid"
    other = headers | {"Signature-Agent": 'sig1="https://other.example"'}
    assert verdict(path.parent, keys, "example.org", other, form)[0] == "invalid"


@needs_botgate
def test_botgate_refuses_a_signature_after_a_minute(path: Path) -> None:
    form = SignatureForm.DICTIONARY
    write(path, [*create(path.with_name("old"), NOW - 1000)])
    headers = signer(path, form).headers("example.org", SystemClock().now() - 62)
    _, errors = verdict(path.parent, directory(read(path)), "example.org", headers, form)
    assert any("expired" in error for error in errors), errors


def test_draft_generating_http_message_signature(path: Path) -> None:
    """The parameters that the draft demands, and their values."""
    headers = signer(path).headers("example.org", NOW + 0.9)
    assert headers["Signature-Agent"] == f'sig1="{AGENT}"'
    assert re.fullmatch(
        rf'sig1=\("@authority" "signature-agent";key="sig1"\);created={NOW};expires={NOW + 60}'
        rf';keyid="{read(path)[0].keyid}";nonce="[^"]+";tag="web-bot-auth"',
        headers["Signature-Input"],
    )
    again = signer(path).headers("example.org", NOW + 0.9)
    assert again["Signature"] != headers["Signature"]


def test_draft_legacy_signature_agent_sf_string(path: Path) -> None:
    headers = signer(path, SignatureForm.STRING).headers("example.org", NOW)
    assert headers["Signature-Agent"] == f'"{AGENT}"'
    assert headers["Signature-Input"].startswith('sig1=("@authority" "signature-agent");created=')


def test_a_rotation_reaches_a_running_crawl_which_changes_the_key_in_time(path: Path) -> None:
    signs = signer(path)
    old = keyid(signs.headers("example.org", NOW))
    write(path, rotated(read(path), NOW))
    os.utime(path, (NOW + 1, NOW + 1))
    new = read(path)[1].keyid
    assert keyid(signs.headers("example.org", NOW + 61)) == old
    assert keyid(signs.headers("example.org", NOW + DIRECTORY_MAX_AGE_S)) == new


def test_a_key_file_that_disappears_leaves_its_keys(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    signs = signer(path)
    before = keyid(signs.headers("example.org", NOW))
    path.unlink()
    assert keyid(signs.headers("example.org", NOW + 61)) == before
    assert "cannot be read again" in caplog.text
    with pytest.raises(UsageError, match="identity new"):
        signer(path)
