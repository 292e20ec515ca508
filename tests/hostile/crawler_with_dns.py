"""The ``crawler`` command, with the DNS server of the hostile web: ``HOSTILE_DNS=ADDRESS:PORT`` in the environment."""

from __future__ import annotations

import os

import aiohttp

from crawler.cli import main


class InjectedResolver(aiohttp.AsyncResolver):
    """The usual resolver, which asks our server, and no file."""

    def __init__(self) -> None:
        address, _, port = os.environ["HOSTILE_DNS"].partition(":")
        super().__init__(nameservers=[address], udp_port=int(port), tcp_port=int(port), lookups="b", tries=2)


if __name__ == "__main__":
    aiohttp.DefaultResolver = InjectedResolver
    main()
