"""How the number of a URL packs its site and its path; no other module knows it.

The number is ``site << 32 | hash``: 31 bits for the number of the site, then 32 bits of a hash of the path
(docs/decisions/0012-number-urls-by-site.md). SQL says
``site_of(x)``, ``first_url_of(x)``, ``last_url_of(x)`` and ``path_hash_of(x)``. :func:`render_keys` writes them out as
arithmetic for both databases: any client can read a view, and an index on the number serves it.
"""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from crawler.store.statements import render_calls

_HASH_BITS = 32
_HASH_MASK = (1 << _HASH_BITS) - 1

_FUNCTIONS = {
    "site_of": f"({{0}} >> {_HASH_BITS})",
    "first_url_of": f"({{0}} << {_HASH_BITS})",
    "last_url_of": f"(({{0}} << {_HASH_BITS}) + {_HASH_MASK})",
    "path_hash_of": f"({{0}} & {_HASH_MASK})",
}


def url_number(site_id: int, path: str) -> int:
    """The number of a URL, unless another path of its site has it; then :func:`number_after` gives the next one."""
    return first_url_of(site_id) | xxh3_64_intdigest(path.encode()) >> (64 - _HASH_BITS)


def number_after(number: int) -> int:
    """The number that a URL gets if another path of its site has ``number``: the next one of the same site."""
    return first_url_of(site_of(number)) | (number + 1) & _HASH_MASK


def site_of(number: int) -> int:
    """The number of the site of a URL."""
    return number >> _HASH_BITS


def first_url_of(site_id: int) -> int:
    """The least number that a URL of a site can have."""
    return site_id << _HASH_BITS


def same_path_on(site_id: int, number: int) -> int:
    """The number that a URL gets if its site gets the number ``site_id``."""
    return first_url_of(site_id) | number & _HASH_MASK


def render_keys(sql: str) -> str:
    """SQL with the calls of ``site_of`` and the like written out as arithmetic. Their arguments contain no brackets."""
    return render_calls(sql, _FUNCTIONS)
