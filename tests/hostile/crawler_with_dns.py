"""The ``crawler`` command, with the DNS server of the hostile web: ``HOSTILE_DNS=ADDRESS:PORT`` in the environment."""

from __future__ import annotations

import os

from crawler.cli import main
from crawler.fetch import resolver
from crawler.fetch.name_servers import NameServers


def injected() -> NameServers:
    """The usual resolver, which asks our server, and no file."""
    return NameServers({"nameservers": [os.environ["HOSTILE_DNS"]], "lookups": "b", "timeout": 1.0, "tries": 2})


if __name__ == "__main__":
    resolver.NameServers = injected  # type: ignore[assignment,misc]
    main()
