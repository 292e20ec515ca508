"""Asks botgate, an independent verifier of Web Bot Auth, what it thinks of a signed request."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

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
    """What botgate finds of a request with ``headers`` to ``authority``, with the keys in ``directory``.

    Returns its verdict about the signature, and the errors against protocol and policy.
    """
    lines = [
        f"GET /a?b HTTP/1.1\r\nHost: {authority}\r\n",
        *(f"{name}: {value}\r\n" for name, value in headers.items()),
    ]
    (folder / "request.http").write_text("".join([*lines, "\r\n"]), "ascii")
    (folder / "directory.json").write_bytes(directory)
    (folder / "policy.toml").write_text(_POLICY)
    options = ("--jwks=directory.json", "--config=policy.toml", "--format=json", f"--profile={_PROFILES[form]}")
    command = ["botgate", "verify", "request.http", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    (signature,) = report["signatures"]
    errors = {finding["message"] for finding in report["findings"] if finding["level"] == "error"}
    assert (done.returncode == 0) is (not errors)
    return signature["cryptographic_status"], errors
