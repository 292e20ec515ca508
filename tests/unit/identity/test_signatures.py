"""The published vectors of RFC 9421 and draft-ietf-webbotauth-httpsig-protocol, byte for byte."""

from __future__ import annotations

from base64 import urlsafe_b64decode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_sf import ser

from crawler.identity.keys import SigningKey, thumbprint
from crawler.identity.publish import possession_proof
from crawler.identity.signatures import (
    SignedFields,
    component,
    content_digest,
    signature_base,
    signed_fields,
)

# RFC 9421, B.1.4. The directory of a crawler must never have this key.
PRIVATE = Ed25519PrivateKey.from_private_bytes(urlsafe_b64decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU="))
X = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"
KEYID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
AGENT = "https://signature-agent.test"


def test_rfc9421_b_2_6_signing_a_request_using_ed25519() -> None:
    covered = [
        component("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
        component("@method", "POST"),
        component("@path", "/foo"),
        component("@authority", "example.com"),
        component("content-type", "application/json"),
        component("content-length", "18"),
    ]
    parameters = {"created": 1618884473, "keyid": "test-key-ed25519"}
    assert signature_base(covered, parameters) == (
        '"date": Tue, 20 Apr 2021 02:07:55 GMT\n'
        '"@method": POST\n'
        '"@path": /foo\n'
        '"@authority": example.com\n'
        '"content-type": application/json\n'
        '"content-length": 18\n'
        '"@signature-params": ("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"'
    )
    assert signed_fields("sig-b26", covered, parameters, PRIVATE.sign) == SignedFields(
        'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"',
        "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
    )


def test_rfc8037_a_3_jwk_thumbprint() -> None:
    assert thumbprint("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo") == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


@pytest.mark.parametrize(
    ("agent", "expires", "nonce", "covered", "signature"),
    [
        pytest.param(
            component("signature-agent", ser(AGENT), key="agent2"),
            4889289600,
            "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
            '"signature-agent";key="agent2"',
            "RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==",
            id="signature-agent-included",
        ),
        pytest.param(
            component("signature-agent", ser(AGENT)),
            1735693200,
            "e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==",
            '"signature-agent"',
            "jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==",
            id="legacy-signature-agent-sf-string",
        ),
    ],
)
def test_draft_test_vectors_eddsa(
    agent: tuple[str, str], expires: int, nonce: str, covered: str, signature: str
) -> None:
    """The section "EdDSA Using Curve edwards25519" of the draft."""
    parameters = {
        "created": 1735689600,
        "keyid": KEYID,
        "alg": "ed25519",
        "expires": expires,
        "nonce": nonce,
        "tag": "web-bot-auth",
    }
    signed = signed_fields("sig2", [component("@authority", "example.com"), agent], parameters, PRIVATE.sign)
    assert signed.signature_input == (
        f'sig2=("@authority" {covered});created=1735689600;keyid="{KEYID}";alg="ed25519";expires={expires}'
        f';nonce="{nonce}";tag="web-bot-auth"'
    )
    assert signed.signature == f"sig2=:{signature}:"


def test_draft_test_vectors_signed_directory_response() -> None:
    body = f'{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"{KEYID}","x":"{X}","use":"sig"}}]}}'.encode()
    key = SigningKey.of(PRIVATE, 0)
    assert (key.x, key.keyid) == (X, KEYID)
    assert content_digest(body) == "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"
    assert possession_proof(body, [key], "signature-agent.test", 1735689600, 4889289600) == {
        "Content-Digest": "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:",
        "Signature-Input": (
            'binding=("@authority";req "content-digest");created=1735689600;expires=4889289600'
            f';keyid="{KEYID}";tag="http-message-signatures-directory"'
        ),
        "Signature": (
            "binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:"
        ),
    }
