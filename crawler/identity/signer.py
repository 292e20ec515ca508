"""Signs requests by Web Bot Auth (draft-ietf-webbotauth-httpsig-protocol)."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Sequence
from os import urandom
from pathlib import Path

from crawler.errors import UsageError
from crawler.identity.keys import SigningKey, read, signing
from crawler.identity.signatures import component, member, signed_fields
from crawler.settings.settings import SignatureForm

_LOG = logging.getLogger("crawler.identity")

_LABEL = "sig1"
_TAG = "web-bot-auth"
_NONCE_BYTES = 32
#: How often the key file is looked at, in seconds: a rotation reaches a running crawl within this time.
_CHECK_EVERY_S = 60


class KeyFile:
    """The keys in a file, read again when the file has changed."""

    def __init__(self, path: Path) -> None:
        """Read the keys. Raises :class:`UsageError` as :func:`crawler.identity.keys.read` does."""
        self._path = path
        self._keys = read(path)
        self._changed_at = path.stat().st_mtime_ns
        self._checked_at = 0.0

    def at(self, now: float) -> Sequence[SigningKey]:
        """The keys. If the file has become unreadable, the ones before: signatures by them are still valid."""
        if abs(now - self._checked_at) >= _CHECK_EVERY_S:
            self._checked_at = now
            try:
                changed_at = self._path.stat().st_mtime_ns
                if changed_at != self._changed_at:
                    self._keys = read(self._path)
                    self._changed_at = changed_at
            except (OSError, UsageError) as error:
                _LOG.warning("the key file cannot be read again: %s", error)
        return self._keys


class WebBotAuth:
    """Signs each request for its authority, with the key that is current; see :class:`crawler.fetch.client.Signer`.

    ``agent`` is the URL in ``Signature-Agent``. A signature holds for ``lifetime_s`` seconds.
    """

    def __init__(self, keys: KeyFile, agent: str, form: SignatureForm, lifetime_s: float) -> None:
        self._keys = keys
        self._lifetime_s = max(1, round(lifetime_s))
        if form is SignatureForm.DICTIONARY:
            self._field = f"{_LABEL}={member(agent)}"
            self._agent = component("signature-agent", member(agent), key=_LABEL)
        else:
            self._field = member(agent)
            self._agent = component("signature-agent", self._field)

    def headers(self, authority: str, now: float) -> dict[str, str]:
        """The three headers of a request that is sent to ``authority`` at ``now`` (section "Sending a Request").

        ``authority`` is as RFC 9421, 2.2.3 derives it: in lower case, without the default port. The nonce makes each
        signature a new one, so a verifier can refuse a repeated one (RFC 9421, 7.2.2).
        """
        key = signing(self._keys.at(now), now)
        created = int(now)
        signed = signed_fields(
            _LABEL,
            (component("@authority", authority), self._agent),
            {
                "created": created,
                "expires": created + self._lifetime_s,
                "keyid": key.keyid,
                "nonce": b64encode(urandom(_NONCE_BYTES)).decode(),
                "tag": _TAG,
            },
            key.private.sign,
        )
        return {
            "Signature-Agent": self._field,
            "Signature-Input": signed.signature_input,
            "Signature": signed.signature,
        }
