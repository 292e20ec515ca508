"""The ``crawler`` command, with the DNS server of the hostile web: ``HOSTILE_DNS=ADDRESS:PORT`` in the environment."""

from __future__ import annotations

import os

import aiohttp

from crawler.cli import main


class InjectedResolver(aiohttp.AsyncResolver):
    """The usual resolver, which asks our server, and no file."""

    def __init__(self) -> None:
        super().__init__(nameservers=[os.environ["HOSTILE_DNS"]], lookups="b", timeout=1.0, tries=2)


if __name__ == "__main__":
    aiohttp.DefaultResolver = InjectedResolver
    main()
