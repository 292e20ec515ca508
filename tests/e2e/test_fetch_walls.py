"""The fetcher and walls: by their fields whatever the status, by the body of an error, in each encoding. And prices."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from pathlib import Path

import brotli
import pytest

from crawler.model import Failed, Fetched, Purpose
from crawler.page.walls import MAX_WALL_BYTES, REFUSING
from crawler.reasons import ErrorKind
from tests.e2e.test_fetch_answers import answer, fetch_from

CASES = Path(__file__).parents[1] / "conformance/walls.jsonl"
WALL = next(
    case["body"].encode()
    for case in map(json.loads, CASES.read_text("utf-8").splitlines())
    if "managed" in case["name"]
)
ENCODINGS = {"identity": lambda body: body, "gzip": gzip.compress, "br": brotli.compress}


def fails(result: object) -> tuple[ErrorKind, int | None]:
    assert isinstance(result, Failed), result
    return result.kind, result.status


@pytest.mark.parametrize("status", [200, 202, 204, 402, 403, 404, 429, 503])
async def test_a_field_decides_whatever_the_status(status: int) -> None:
    octets = answer(b"", "cf-mitigated: challenge", status=f"{status} X", kind="application/json")
    result = await fetch_from(octets)
    assert fails(result) == (ErrorKind.WALL, status)
    assert isinstance(result, Failed)
    assert result.detail == "Cloudflare (cf-mitigated: challenge)"


@pytest.mark.parametrize(("status", "coding"), list(itertools.product(sorted(REFUSING), ENCODINGS)))
async def test_the_body_of_a_refusal_decides(status: int, coding: str) -> None:
    octets = answer(ENCODINGS[coding](WALL), f"Content-Encoding: {coding}", status=f"{status} X")
    assert fails(await fetch_from(octets)) == (ErrorKind.WALL, status)


async def test_a_refusal_that_is_no_wall_stays_an_error() -> None:
    assert fails(await fetch_from(answer(b"<h1>Forbidden</h1>", status="403 X"))) == (ErrorKind.HTTP, 403)
    assert fails(await fetch_from(answer(WALL + bytes(MAX_WALL_BYTES), status="403 X"))) == (ErrorKind.HTTP, 403)
    broken = answer(WALL, "Content-Encoding: gzip", status="403 X")
    assert fails(await fetch_from(broken)) == (ErrorKind.HTTP, 403)


async def test_the_body_of_a_200_is_judged_at_once_unless_it_is_a_page() -> None:
    assert fails(await fetch_from(answer(WALL), purpose=Purpose.ROBOTS, any_type=True)) == (ErrorKind.WALL, 200)
    assert isinstance(await fetch_from(answer(WALL)), Fetched)  # a parser process judges it


X402 = {"x402Version": 2, "accepts": [{"amount": "10000", "asset": "0x0", "network": "eip155:8453"}]}
V1 = {"x402Version": 1, "accepts": [{"maxAmountRequired": "7", "asset": "0x0", "network": "base"}]}


@pytest.mark.parametrize(
    ("octets", "price"),
    [
        (answer(b"", "crawler-price: USD 0.01", status="402 X"), "USD 0.01"),
        (
            answer(b"{}", f"PAYMENT-REQUIRED: {base64.b64encode(json.dumps(X402).encode()).decode()}", status="402 X"),
            "x402: 10000 of 0x0 on eip155:8453",
        ),
        (
            answer(json.dumps(V1).encode(), status="402 X", kind="application/json"),
            "x402: 7 of 0x0 on base",
        ),
        (
            answer(b"", 'Link: <https://a.test/l.xml>; rel="license"; type="application/rsl+xml"', status="402 X"),
            "licence https://a.test/l.xml",
        ),
    ],
)
async def test_a_402_that_names_a_price(octets: bytes, price: str) -> None:
    result = await fetch_from(octets)
    assert fails(result) == (ErrorKind.PAYMENT, 402)
    assert isinstance(result, Failed)
    assert result.detail == price


async def test_a_401_that_asks_for_a_licence() -> None:
    asked = 'License error="invalid_request", error_description="Access needs a licence"'
    result = await fetch_from(answer(b"", f"WWW-Authenticate: {asked}", status="401 X"))
    assert fails(result) == (ErrorKind.PAYMENT, 401)
    assert isinstance(result, Failed)
    assert result.detail == asked
    assert fails(await fetch_from(answer(b"", "WWW-Authenticate: Basic", status="401 X"))) == (ErrorKind.HTTP, 401)


async def test_a_402_without_a_price_is_an_error_and_robots_txt_has_none() -> None:
    assert fails(await fetch_from(answer(b"no", status="402 X"))) == (ErrorKind.HTTP, 402)
    asked = answer(b"", "crawler-price: USD 0.01", status="402 X")
    assert fails(await fetch_from(asked, purpose=Purpose.ROBOTS, any_type=True)) == (ErrorKind.HTTP, 402)
