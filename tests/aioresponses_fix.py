"""aioresponses 0.7.9 with aiohttp 3.14: give its answers the ``stream_writer`` that they now need.

Since aiohttp 3.14 a ``ClientResponse`` asks, as it is made, how many bytes the request's writer has sent;
aioresponses passes it no writer (https://github.com/pnuckowski/aioresponses, issue 289). To be dropped with the
release that does.
"""

from collections.abc import Iterator
from functools import partial
from unittest.mock import Mock

import aioresponses.core
import pytest
from aiohttp import ClientResponse


@pytest.fixture
def mocked_web(monkeypatch: pytest.MonkeyPatch) -> Iterator[aioresponses.aioresponses]:
    """A web that exists only in the test: ``mocked_web.get(url, status=…, headers=…, body=…)``."""
    writer = Mock(output_size=0)
    monkeypatch.setattr(aioresponses.core, "ClientResponse", partial(ClientResponse, stream_writer=writer))
    with aioresponses.aioresponses() as web:
        yield web
