"""How the number of a URL packs its site and its path; no other module knows it.

The number is ``site << 32 | hash``: 31 bits for the number of the site, then 32 bits of a hash of the path
(docs/decisions/0012-number-urls-by-site.md). The hash has a random key in each store: no site can offer paths that have
the same hash there. SQL says
``site_of(x)``, ``first_url_of(x)``, ``last_url_of(x)`` and ``path_hash_of(x)``. :func:`render_keys` writes them out as
arithmetic for both databases: any client can read a view, and an index on the number serves it.
"""

from __future__ import annotations

import os

from xxhash import xxh3_64_intdigest

from crawler.store.statements import render_calls

_HASH_BITS = 32
_HASH_MASK = (1 << _HASH_BITS) - 1
_KEY_BITS = 64
#: A path may have one of this many numbers: the one of its hash, and those that follow it.
PROBES = 64

_FUNCTIONS = {
    "site_of": f"({{0}} >> {_HASH_BITS})",
    "first_url_of": f"({{0}} << {_HASH_BITS})",
    "last_url_of": f"(({{0}} << {_HASH_BITS}) + {_HASH_MASK})",
    "path_hash_of": f"({{0}} & {_HASH_MASK})",
}


def new_key() -> int:
    """A random key for the hashes of a store, as a signed integer of 64 bits, which both databases can store."""
    return int.from_bytes(os.urandom(_KEY_BITS // 8), signed=True)


def url_number(site_id: int, path: str, key: int) -> int:
    """The number of a URL in the store with this key, unless another path has it; see :func:`numbers_from`.

    The front page has the least number of its site, so of URLs at the same depth it is requested first: it says soonest
    whether a site refuses all its pages.
    """
    if path == "/":
        return first_url_of(site_id)
    return site_id << _HASH_BITS | xxh3_64_intdigest(path.encode(), key % (1 << _KEY_BITS)) >> (64 - _HASH_BITS)


def numbers_from(number: int) -> list[int]:
    """The numbers that a URL may have, in order. ``number`` is its :func:`url_number`, and the first of them.

    A URL has the first one that no other path had before it. All belong to the same site.
    """
    first, offset = first_url_of(site_of(number)), number & _HASH_MASK
    return [first | (offset + step) & _HASH_MASK for step in range(PROBES)]


def site_of(number: int) -> int:
    """The number of the site of a URL."""
    return number >> _HASH_BITS


def first_url_of(site_id: int) -> int:
    """The least number that a URL of a site can have."""
    return site_id << _HASH_BITS


def render_keys(sql: str) -> str:
    """SQL with the calls of ``site_of`` and the like written out as arithmetic. Their arguments contain no brackets."""
    return render_calls(sql, _FUNCTIONS)
