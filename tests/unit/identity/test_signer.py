"""Signed requests, judged by an independent verifier, and the keys of a crawl that runs for long."""

from __future__ import annotations

import os
import re
from base64 import b64decode
from pathlib import Path

import pytest

from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.identity.keys import DIRECTORY_MAX_AGE_S, create, read, rotated, write
from crawler.identity.publish import directory
from crawler.identity.signatures import component, signature_base
from crawler.identity.signer import KeyFile, WebBotAuth
from crawler.settings.settings import SignatureForm
from tests.botgate import needs_botgate, verdict

NOW = int(SystemClock().now())
AGENT = "https://crawler.example"
FIELDS = {"User-Agent": "TownCrawler/0.2.0"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create(tmp_path / "identity.jwks", NOW - 1)
    return tmp_path / "identity.jwks"


def signer(path: Path, form: SignatureForm = SignatureForm.DICTIONARY) -> WebBotAuth:
    return WebBotAuth(KeyFile(path), AGENT, form, 60)


def signed(by: WebBotAuth, authority: str, now: float) -> dict[str, str]:
    """The headers of a request to ``authority``."""
    return by.headers("GET", f"https://{authority}/a?b", authority, FIELDS, now)


def keyid(headers: dict[str, str]) -> str:
    found = re.search('keyid="([^"]+)"', headers["Signature-Input"])
    assert found is not None
    return found[1]


@needs_botgate
@pytest.mark.parametrize("form", SignatureForm)
@pytest.mark.parametrize("authority", ["example.org", "shop.example:8443", "[2001:db8::1]:8080"])
def test_botgate_says_valid(path: Path, form: SignatureForm, authority: str) -> None:
    headers = signed(signer(path, form), authority, SystemClock().now())
    assert verdict(path.parent, directory(read(path)), authority, headers, form) == ("valid", set())


@needs_botgate
def test_botgate_says_invalid_for_another_host_and_for_another_agent(path: Path) -> None:
    form, keys = SignatureForm.DICTIONARY, directory(read(path))
    headers = signed(signer(path, form), "example.org", SystemClock().now())
    assert verdict(path.parent, keys, "example.net", headers, form)[0] == "invalid"
    other = headers | {"Signature-Agent": 'sig1="https://other.example"'}
    assert verdict(path.parent, keys, "example.org", other, form)[0] == "invalid"


@needs_botgate
def test_botgate_refuses_a_signature_after_a_minute(path: Path) -> None:
    form = SignatureForm.DICTIONARY
    write(path, [*create(path.with_name("old"), NOW - 1000)])
    headers = signed(signer(path, form), "example.org", SystemClock().now() - 62)
    _, errors = verdict(path.parent, directory(read(path)), "example.org", headers, form)
    assert any("expired" in error for error in errors), errors


def test_draft_generating_http_message_signature(path: Path) -> None:
    """The parameters that the draft demands, and their values."""
    headers = signed(signer(path), "example.org", NOW + 0.9)
    assert headers["Signature-Agent"] == f'sig1="{AGENT}"'
    assert re.fullmatch(
        rf'sig1=\("@authority" "signature-agent";key="sig1"\);created={NOW};expires={NOW + 60}'
        rf';keyid="{read(path)[0].keyid}";nonce="[^"]+";tag="web-bot-auth"',
        headers["Signature-Input"],
    )
    again = signed(signer(path), "example.org", NOW + 0.9)
    assert again["Signature"] != headers["Signature"]


def test_draft_legacy_signature_agent_sf_string(path: Path) -> None:
    headers = signed(signer(path, SignatureForm.STRING), "example.org", NOW)
    assert headers["Signature-Agent"] == f'"{AGENT}"'
    assert headers["Signature-Input"].startswith('sig1=("@authority" "signature-agent");created=')


def test_a_rotation_reaches_a_running_crawl_which_changes_the_key_in_time(path: Path) -> None:
    signs = signer(path)
    old = keyid(signed(signs, "example.org", NOW))
    write(path, rotated(read(path), NOW))
    os.utime(path, (NOW + 1, NOW + 1))
    new = read(path)[1].keyid
    assert keyid(signed(signs, "example.org", NOW + 61)) == old
    assert keyid(signed(signs, "example.org", NOW + DIRECTORY_MAX_AGE_S)) == new


def test_a_key_file_that_disappears_leaves_its_keys(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    signs = signer(path)
    before = keyid(signed(signs, "example.org", NOW))
    path.unlink()
    assert keyid(signed(signs, "example.org", NOW + 61)) == before
    assert "cannot be read again" in caplog.text
    with pytest.raises(UsageError, match="identity new"):
        signer(path)


def demand(signs: WebBotAuth, value: str, url: str = "https://example.org/a?b") -> tuple[bool, str]:
    """Whether a demand asks for another signature than before, and what the next request is signed for."""
    is_new = signs.heed(url, value, FIELDS, NOW)
    return is_new, signed(signs, "example.org", NOW)["Signature-Input"]


def test_rfc_9421_5_2_a_demand_is_met_with_its_label_components_and_parameters(path: Path) -> None:
    signs, own = signer(path), read(path)[0].keyid
    wanted = 'bot=("@method" "@authority" "@path" "@query" "user-agent" "signature-agent";key="bot")'
    value = f'{wanted};created;expires;keyid;alg="ed25519";nonce="n1";tag="web-bot-auth"'
    given = f'{wanted};created={NOW};expires={NOW + 60};keyid="{own}";alg="ed25519";nonce="'
    assert demand(signs, value) == (True, f'{given}n1";tag="web-bot-auth"')
    assert 'nonce="n1"' not in signed(signs, "example.org", NOW)["Signature-Input"], "a nonce serves one request"
    assert signed(signs, "example.net", NOW)["Signature-Input"].startswith('sig1=("@authority"')
    demand(signs, value.replace("n1", "n2"))
    assert not signs.heed("https://example.org/", value.replace("n1", "n3"), FIELDS, NOW), "the last one had its nonce"
    headers = signed(signs, "example.org", NOW)
    assert headers["Signature-Agent"] == f'bot="{AGENT}"'
    base = signature_base(
        [
            component("@method", "GET"),
            component("@authority", "example.org"),
            component("@path", "/a"),
            component("@query", "?b"),
            component("user-agent", "TownCrawler/0.2.0"),
            component("signature-agent", f'"{AGENT}"', key="bot"),
        ],
        {
            "created": NOW,
            "expires": NOW + 60,
            "keyid": own,
            "alg": "ed25519",
            "nonce": "n3",
            "tag": "web-bot-auth",
        },
    )
    octets = b64decode(headers["Signature"].removeprefix("bot=:").removesuffix(":"))
    read(path)[0].private.public_key().verify(octets, base.encode())


def test_two_demands_are_met_together_and_the_usual_one_is_none(path: Path) -> None:
    usual = '("@authority" "signature-agent";key="sig1");tag="web-bot-auth"'
    assert not demand(signer(path), f"sig1={usual}")[0]
    is_new, given = demand(signer(path), f'sig1={usual}, b=("@target-uri" "signature-agent")')
    assert is_new
    assert re.findall(r"(\w+)=\(", given) == ["sig1", "b"]
    legacy = signer(path, SignatureForm.STRING)
    assert demand(legacy, 'x=("@authority" "signature-agent")')[1].startswith('x=("@authority" "signature-agent");')


@pytest.mark.parametrize(
    "value",
    [
        'a=("@method" "signature-agent")',  # it would hold for any site
        'a=("@authority")',  # the profile demands the agent
        'a=("@authority" "signature-agent");tag="other"',
        'a=("@authority" "signature-agent");alg="rsa-pss-sha512"',
        'a=("@authority" "signature-agent");created=1',
        'a=("@authority" "signature-agent");unknown',
        'a=("@authority" "signature-agent" "cookie")',
        'a=("@authority";req "signature-agent")',
        'a=("@authority" "signature-agent";key="b")',
        'a=("@authority" "signature-agent"), b=("@status")',
        "a",
        "(",
        "a=(" + '"@path" ' * 21 + '"@authority" "signature-agent")',
    ],
)
def test_a_demand_that_cannot_be_met_changes_nothing(path: Path, value: str) -> None:
    is_new, given = demand(signer(path), value)
    assert not is_new
    assert given.startswith('sig1=("@authority" "signature-agent";key="sig1");created=')


def test_a_demand_for_another_key_is_not_met(path: Path) -> None:
    is_new, given = demand(signer(path), 'a=("@authority" "signature-agent");keyid="another"')
    assert (is_new, given[:5]) == (False, "sig1=")
