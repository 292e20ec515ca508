"""The buckets of a dataset (``docs/scale.md``), and the bucket that each registered domain belongs to."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from crawler.url import host_of, registered_domain


class Bucket(NamedTuple):
    """One of the ``of`` buckets of a dataset, by its ``number`` from 0. A store that belongs to one is the bucket's."""

    number: int
    of: int

    def other_of(self, site: str) -> int | None:
        """The number of the other bucket that a site belongs to; ``None`` if it belongs to this one."""
        number = bucket_of(site, self.of)
        return None if number == self.number else number


def bucket_of(site: str, buckets: int) -> int:
    """The number, from 0, of the bucket of ``buckets`` that a site belongs to.

    It is the number in the first eight octets of the SHA-256 of the registered domain, modulo ``buckets``. A host
    without a registered domain, such as an IP address, stands for itself.
    """
    return _bucket_of_host(host_of(site), buckets)


@lru_cache(10_000)
def _bucket_of_host(host: str, buckets: int) -> int:
    domain = registered_domain(host).removesuffix(".")
    return int.from_bytes(sha256(domain.encode()).digest()[:8]) % buckets
