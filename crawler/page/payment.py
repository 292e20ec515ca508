"""Reads what a 402 asks for, a price or a licence, and the licence that a 401 or 403 asks for. Nothing is ever paid.

Sources: Cloudflare, "Pay per crawl: crawl pages" (``crawler-price``); x402, "Transport: HTTP", version 2 (the field
``PAYMENT-REQUIRED``) and version 1 (a JSON body); RSL 1.0 (``Link`` with ``rel=license``, and ``WWW-Authenticate:
License``).
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from crawler.model import Headers, header, header_values
from crawler.page.headers import links_with_rel
from crawler.terminal_text import printable

_MAX_CHARS = 200


def price_asked(headers: Headers, body: bytes = b"") -> str:
    """The price or the licence that a 402 names, printable and bounded; empty if it names none."""
    return printable(_named(headers, body))[:_MAX_CHARS]


def _named(headers: Headers, body: bytes) -> str:
    if price := (header(headers, "crawler-price") or "").strip():
        return price
    if asked := _x402(_decoded(header(headers, "payment-required") or "")) or _x402(body):
        return asked
    licences = links_with_rel(headers, "license")
    if licences:
        return f"licence {licences[0]}"
    return licence_asked(headers)


def licence_asked(headers: Headers) -> str:
    """The challenge by which a 401, 402 or 403 asks for a licence, printable and bounded; empty if there is none."""
    challenges = (one.strip() for one in header_values(headers, "www-authenticate"))
    return printable(next((one for one in challenges if one.lower().split(" ")[0] == "license"), ""))[:_MAX_CHARS]


def _decoded(field: str) -> bytes:
    try:
        return base64.b64decode(field, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _x402(text: bytes) -> str:
    """The first offer of an x402 document; empty if ``text`` is none."""
    if b"x402Version" not in text:
        return ""
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        return "x402"
    offers = said.get("accepts") if isinstance(said, dict) else None
    first = offers[0] if isinstance(offers, list) and offers and isinstance(offers[0], dict) else {}
    amount = first.get("amount", first.get("maxAmountRequired"))
    if amount is None:
        return "x402"
    return f"x402: {amount} of {first.get('asset')} on {first.get('network')}"
