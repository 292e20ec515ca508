"""Asks botgate, an independent verifier of Web Bot Auth, what it thinks of a signed request."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crawler.settings.settings import SignatureForm

needs_botgate = pytest.mark.skipif(shutil.which("botgate") is None, reason="botgate is not installed")

#: The version of the protocol that has each form of ``Signature-Agent``.
_PROFILES = {SignatureForm.DICTIONARY: "ietf-draft-00", SignatureForm.STRING: "cloudflare-2026-10"}
#: The draft demands the host alone, and so does the crawler sign.
_POLICY = """
[policy]
require_authority = true
require_method = false
require_path = false
query = "ignore"
body = "ignore"
max_age_seconds = 60
max_lifetime_seconds = 60
allowed_future_skew_seconds = 0
require_nonce = true
"""


def verdict(
    folder: Path, directory: bytes, authority: str, headers: Mapping[str, str], form: SignatureForm
) -> tuple[str, set[str]]:
    """The verdict of botgate about a request with ``headers`` to ``authority``, with the keys in ``directory``.

    Returns its verdict about the signature, and the errors against protocol and policy.
    """
    (folder / "directory.json").write_bytes(directory)
    report = _verify(folder, authority, headers, "--jwks=directory.json", f"--profile={_PROFILES[form]}")
    (signature,) = report["signatures"]
    errors = {finding["message"] for finding in report["findings"] if finding["level"] == "error"}
    return signature["cryptographic_status"], errors


def discovered_identity(folder: Path, authority: str, headers: Mapping[str, str]) -> str:
    """The verdict of botgate about the identity in the directory that ``Signature-Agent`` names, on loopback."""
    options = ("--discover", "--allow-private-discovery", "--allow-insecure-discovery")
    report = _verify(folder, authority, headers, *options)
    (signature,) = report["signatures"]
    assert signature["cryptographic_status"] == "valid", report
    return str(signature["identity_status"])


def _verify(folder: Path, authority: str, headers: Mapping[str, str], *options: str) -> dict[str, Any]:
    lines = ["GET /a?b HTTP/1.1", f"Host: {authority}", *(f"{name}: {value}" for name, value in headers.items())]
    (folder / "request.http").write_text("\r\n".join([*lines, "", ""]), "ascii")
    (folder / "policy.toml").write_text(_POLICY)
    command = ["botgate", "verify", "request.http", *options, "--config=policy.toml", "--format=json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode == 0) is not any(finding["level"] == "error" for finding in report["findings"])
    return report
