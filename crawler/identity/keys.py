"""The signing keys of a crawler: a private JWK Set in a file that only its owner can read.

A JWK has ``nbf`` and ``exp`` in seconds since the epoch, as the key directory of draft-ietf-webbotauth-httpsig-protocol
has them: the key signs from the first on, and is published until the second.
"""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from crawler.atomic_files import AtomicFiles
from crawler.errors import UsageError
from crawler.private_files import PRIVATE

#: How long verifiers may keep a copy of the key directory, in seconds. A new key is published for that time before it
#: signs, and an old one for that time after it signed last.
DIRECTORY_MAX_AGE_S = 86400


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An Ed25519 key. ``keyid`` is its JWK thumbprint (RFC 7638; RFC 8037, A.3). Times in seconds since the epoch."""

    private: Ed25519PrivateKey = field(repr=False)
    x: str  # the public key in base64url
    keyid: str
    not_before: int
    expires_at: int | None = None

    @classmethod
    def of(cls, private: Ed25519PrivateKey, not_before: int, expires_at: int | None = None) -> SigningKey:
        """The key with its public half and its thumbprint."""
        x = _base64url(private.public_key().public_bytes_raw())
        return cls(private, x, thumbprint(x), not_before, expires_at)

    def public_jwk(self) -> dict[str, Any]:
        """The key as the directory lists it."""
        jwk = {"kty": "OKP", "crv": "Ed25519", "kid": self.keyid, "x": self.x, "use": "sig", "nbf": self.not_before}
        return jwk if self.expires_at is None else jwk | {"exp": self.expires_at}


def thumbprint(x: str) -> str:
    """The JWK SHA-256 thumbprint of the Ed25519 public key ``x``, in base64url (RFC 7638, 3; RFC 8037, A.3)."""
    required = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": x}, separators=(",", ":"))
    return _base64url(sha256(required.encode()).digest())


def published(keys: Sequence[SigningKey], now: float) -> list[SigningKey]:
    """The keys that the directory lists at ``now``."""
    return [key for key in keys if key.expires_at is None or key.expires_at > now]


def signing(keys: Sequence[SigningKey], now: float) -> SigningKey:
    """The key that signs at ``now``: the newest that may. A clock that went back finds the oldest key."""
    return max((key for key in keys if key.not_before <= now), default=keys[0], key=lambda key: key.not_before)


def rotated(keys: Sequence[SigningKey], now: int, *, compromised: bool = False) -> list[SigningKey]:
    """``keys`` with a new one.

    The new key signs when all verifiers can know it, and the old ones are published until no verifier needs them. With
    ``compromised`` the new key signs at once, and stands alone.
    """
    if compromised:
        return [SigningKey.of(Ed25519PrivateKey.generate(), now)]
    begins_at = now + DIRECTORY_MAX_AGE_S
    ends_at = begins_at + DIRECTORY_MAX_AGE_S
    old = [key if key.expires_at is not None else replace(key, expires_at=ends_at) for key in published(keys, now)]
    return [*old, SigningKey.of(Ed25519PrivateKey.generate(), begins_at)]


def create(path: Path, now: int) -> list[SigningKey]:
    """Make a key file with one key, which signs from ``now`` on. Raises :class:`UsageError` if it exists."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
    except FileExistsError:
        raise UsageError(f"{path}: exists; `crawler identity rotate {path}` adds a key to it") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None
    keys = [SigningKey.of(Ed25519PrivateKey.generate(), now)]
    try:
        write(path, keys)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    return keys


def write(path: Path, keys: Sequence[SigningKey]) -> None:
    """Replace the key file at ``path``, which keeps its mode. Raises :class:`UsageError`."""
    jwks = {"keys": [key.public_jwk() | {"d": _base64url(key.private.private_bytes_raw())} for key in keys]}
    with AtomicFiles() as files:
        files.open(path).file.write(json.dumps(jwks, indent=2).encode() + b"\n")


def read(path: Path) -> list[SigningKey]:
    """The keys in the file at ``path``, the oldest first.

    Raises :class:`UsageError` if it cannot be read, if others than its owner can read it, and if it is no key file. No
    error shows the contents.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise UsageError(f"{path}: others than its owner can read it: chmod 600 {path}")
            data = file.read(1 << 20)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no key file; `crawler identity new {path}` makes one") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        keys = [_from_jwk(jwk) for jwk in json.loads(data)["keys"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        keys = []
    if not keys:
        raise UsageError(f"{path}: no key file of `crawler identity new`")
    return sorted(keys, key=lambda key: key.not_before)


def _from_jwk(jwk: dict[str, Any]) -> SigningKey:
    seed = urlsafe_b64decode(jwk["d"] + "=" * (-len(jwk["d"]) % 4))
    expires_at = jwk.get("exp")
    key = SigningKey.of(
        Ed25519PrivateKey.from_private_bytes(seed), int(jwk["nbf"]), None if expires_at is None else int(expires_at)
    )
    if key.x != jwk["x"]:
        raise ValueError("x and d are of different keys")
    return key


def _base64url(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()
