"""The submissions of IndexNow: a listener puts them into a folder, and ``rup sync`` reads them from there.

The listener only reads the store, so it works beside a crawl.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

from aiohttp import web

from crawler.cli.http_listener import listening
from crawler.errors import Argument, UsageError
from crawler.private_files import private
from crawler.rup.protocol.indexnow import MAX_URLS, Refused, Submission, read_get, read_post
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.statements import load_statements

#: Submissions that wait in one folder, and those of one host among them. Further ones are answered by 429.
MOST_WAITING, MOST_OF_HOST = 1_000, 20
_MAX_REQUEST_BYTES = 4 << 20
_SQL = load_statements("crawler.rup.robot")


class Inbox:
    """The folder of submissions. The name of a file has a hash of the host, and one of its content."""

    def __init__(self, folder: Path) -> None:
        """Raises :class:`UsageError` if the folder does not exist, or is not writable."""
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise UsageError(Argument("inbox", str(folder)), ": not a folder that can be written")
        self._folder = folder

    def put(self, submission: Submission) -> bool:
        """Keep a submission, durably. False if too many wait."""
        text = json.dumps(submission.as_json()).encode()
        host = sha256(submission.host.encode()).hexdigest()[:16]
        name = f"{host}-{sha256(text).hexdigest()[:32]}.json"
        waiting = [each for each in os.listdir(self._folder) if each.endswith(".json")]
        if name in waiting:
            return True
        if len(waiting) >= MOST_WAITING or sum(each.startswith(host) for each in waiting) >= MOST_OF_HOST:
            return False
        unfinished = self._folder / f".{name}.{secrets.token_hex(8)}"  # the same submission may come twice at once
        with open(unfinished, "wb", opener=private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, self._folder / name)
        return True

    def waiting(self) -> Iterator[tuple[Path, Submission | None]]:
        """The files of submissions that wait, by host; ``None`` if a file holds none.

        One at a time is in memory. Each step reads a file, and so blocks.
        """
        for file in sorted(self._folder.glob("*.json")):
            try:
                submission: Submission | None = read_post(json.loads(file.read_bytes()))
            except (OSError, ValueError, RecursionError):
                submission = None
            yield file, submission


@asynccontextmanager
async def serving(settings: Settings, host: str, port: int, inbox: Inbox) -> AsyncIterator[int]:
    """Take submissions at ``/indexnow`` for the sites of the store in ``settings``; yields the port.

    Raises :class:`UsageError` if the address cannot be used, or if there is no such store.
    """
    async with existing_store(settings) as store:

        async def take(request: web.Request) -> web.Response:
            try:
                submission = await _read(request)
            except Refused as error:
                return web.Response(status=error.status, text=f"{error}\n")
            if not await store.query(_SQL["sites_of_host"], {"host": submission.host}):
                return web.Response(status=403, text="this crawl does not know the host\n")
            if not await asyncio.to_thread(inbox.put, submission):
                return web.Response(status=429, text="too many submissions wait\n", headers={"Retry-After": "3600"})
            return web.Response(status=202, text="the URLs count when the key file was read\n")

        app = web.Application(client_max_size=_MAX_REQUEST_BYTES)
        app.add_routes([web.get("/indexnow", take), web.post("/indexnow", take)])
        async with listening(app, host, port, grace_s=2.0) as (_, taken):
            yield taken


async def _read(request: web.Request) -> Submission:
    """The submission in a request. Raises :class:`Refused`."""
    if request.method != "POST":
        return read_get(request.query)
    try:
        said = json.loads(await request.read())
    except web.HTTPRequestEntityTooLarge:
        raise Refused(400, f"more than {_MAX_REQUEST_BYTES >> 20} MB, or {MAX_URLS:,} URLs") from None
    except (ValueError, RecursionError):
        raise Refused(400, "not JSON") from None
    return read_post(said)
