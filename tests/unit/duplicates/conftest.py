"""Fixtures of the tests of near-duplicates."""

from tests.unit.search.conftest import crawl

__all__ = ["crawl"]
