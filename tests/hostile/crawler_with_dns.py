"""The ``crawler`` command on the hostile web.

The environment names its DNS server: ``HOSTILE_DNS=ADDRESS:PORT``. Slow answers lead to short pauses.
"""

from __future__ import annotations

import os

from crawler.cli import main
from crawler.fetch import resolver
from crawler.fetch.name_servers import NameServers
from crawler.frontier.politeness import PolitenessSettings
from tests.constants import constants


def injected() -> NameServers:
    """The usual resolver, which asks our server, and no file."""
    return NameServers({"nameservers": [os.environ["HOSTILE_DNS"]], "lookups": "b", "timeout": 1.0, "tries": 2})


if __name__ == "__main__":
    resolver.NameServers = injected  # type: ignore[assignment,misc]
    with constants(PolitenessSettings, slow_cap_s=1.0):
        main()
