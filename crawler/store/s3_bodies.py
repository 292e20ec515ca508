"""Objects in a bucket of S3, through obstore, which reads credentials, endpoint and region from the environment."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

import obstore
from obstore.exceptions import BaseError, GenericError, NotFoundError
from obstore.store import S3Store

from crawler.errors import ConnectionLost, StoreError, UsageError

T = TypeVar("T")

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")  # obstore reads all three
_AT_ONCE = 32
_NAMES_AT_ONCE = 1000  # the most that one request to S3 lists or deletes
_SENTENCE_CHARS = 300


class S3Bodies:
    """The objects below ``s3://bucket/prefix``. An object is written by one PUT; its acknowledgement makes it durable.

    obstore retries a request for seconds; :class:`crawler.store.reconnect_policy.ReconnectPolicy` retries for longer.
    """

    def __init__(self, location: str) -> None:
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        self._location = location
        allows_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"
        for name in _ENDPOINTS:
            _require_endpoint(name, os.environ.get(name), allows_http=allows_http)
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                client_options={
                    "allow_http": allows_http,
                    "connect_timeout": timedelta(seconds=5),
                    "timeout": timedelta(seconds=60),
                },
                retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=10)},
            )
        except (BaseError, ValueError) as error:
            raise UsageError(f"{location}: {_sentence(error)}", key="store.bodies") from None
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def put(self, objects: Mapping[str, bytes]) -> None:
        done = await asyncio.gather(*(self._put(*item) for item in objects.items()), return_exceptions=True)
        for error in done:
            if isinstance(error, BaseException):
                raise error

    async def _put(self, name: str, data: bytes) -> None:
        async with self._slots:
            try:
                await self._translated(obstore.put_async(self._store, name, data, use_multipart=False))
            except FileNotFoundError:
                raise StoreError(f"{self._location}: there is no such bucket; make it first") from None

    async def get(self, name: str) -> bytes | None:
        async with self._slots:
            try:
                found = await self._translated(obstore.get_async(self._store, name))
                return bytes(await self._translated(found.bytes_async()))
            except FileNotFoundError:
                return None

    async def names(self, folder: str | None = None) -> AsyncIterator[list[str]]:
        listed = obstore.list(self._store, folder, chunk_size=_NAMES_AT_ONCE)
        while True:
            try:
                yield [meta["path"] for meta in await self._translated(anext(listed))]
            except StopAsyncIteration:
                return

    async def delete(self, names: Sequence[str]) -> None:
        if names:
            await self._translated(obstore.delete_async(self._store, list(names)))

    async def _translated(self, request: Awaitable[T]) -> T:
        """The answer to a request. Raises :class:`FileNotFoundError` if there is no such object."""
        try:
            return await request
        except (FileNotFoundError, NotFoundError) as error:
            raise FileNotFoundError from error
        except GenericError as error:
            raise ConnectionLost(
                f"{self._location}: the object store does not answer as it should ({_sentence(error)}); "
                "what was committed is kept, run the same command again when it does"
            ) from error
        except BaseError as error:
            raise StoreError(
                f"{self._location}: the object store refuses the request ({_sentence(error)}); the credentials come "
                "from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the machine's role"
            ) from error


def _require_endpoint(name: str, url: str | None, *, allows_http: bool) -> None:
    """Raise :class:`UsageError` for a variable that names no server: the library would break off on it."""
    scheme = "https?" if allows_http else "https"
    if url is None or re.fullmatch(rf"{scheme}://[^/@]+(/[^@]*)?", url):
        return
    remedy = "; set AWS_ALLOW_HTTP=true if nobody else can read this network" if url.startswith("http://") else ""
    raise UsageError(f"{name} must be https://HOST, without a password{remedy}", key="store.bodies")


def _sentence(error: Exception) -> str:
    """The first line of an error, without the dump of the request that follows."""
    return str(error).strip().partition("\n")[0][:_SENTENCE_CHARS]
