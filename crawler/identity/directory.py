"""The key directory of a crawler (draft-ietf-webbotauth-httpsig-protocol, "Directory Format")."""

from __future__ import annotations

import json
from collections.abc import Sequence

from crawler.identity.keys import SigningKey
from crawler.identity.signatures import component, content_digest, signed_fields

#: The place of the directory on the host that ``Signature-Agent`` names without a path ("IANA Considerations").
WELL_KNOWN = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE = "application/http-message-signatures-directory+json"
_TAG = "http-message-signatures-directory"


def directory(keys: Sequence[SigningKey]) -> bytes:
    """The JWK Set of the public ``keys``."""
    return json.dumps({"keys": [key.public_jwk() for key in keys]}, separators=(",", ":")).encode()


def possession_proof(
    body: bytes, keys: Sequence[SigningKey], authority: str, created: int, expires: int
) -> dict[str, str]:
    """The headers by which ``keys`` sign the directory ``body``, served by ``authority``.

    One signature for each key, as the draft's section "Possession Proof on the Directory Response" recommends. No
    signature outlives its key. Times in seconds since the epoch.
    """
    digest = content_digest(body)
    covered = (component("@authority", authority, req=True), component("content-digest", digest))
    proofs = [
        signed_fields(
            f"binding{number}" if number else "binding",
            covered,
            {
                "created": created,
                "expires": expires if key.expires_at is None else min(expires, key.expires_at),
                "keyid": key.keyid,
                "tag": _TAG,
            },
            key.private.sign,
        )
        for number, key in enumerate(keys)
    ]
    return {
        "Content-Digest": digest,
        "Signature-Input": ", ".join(proof.signature_input for proof in proofs),
        "Signature": ", ".join(proof.signature for proof in proofs),
    }
