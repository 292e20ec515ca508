"""Fixtures of the client's tests."""

from tests.aioresponses_fix import mocked_web

__all__ = ["mocked_web"]
