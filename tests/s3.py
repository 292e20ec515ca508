"""A real S3 server on loopback, for tests: that of the package moto, which answers over HTTP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import obstore
from obstore.store import S3Store


class S3Server:
    """The server, with the bucket ``crawl``. The environment names it while it runs."""

    bucket = "crawl"

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> None:
        """Listen, at the port of the last time if there was one; the server of before has lost its objects."""
        from moto.server import ThreadedMotoServer  # half a second, in each process that collects the tests

        self._server = ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        self._server.start()
        self.port = self._server.get_host_and_port()[1]
        self._make_bucket()

    def _make_bucket(self) -> None:
        from moto.s3.models import s3_backends

        backend = s3_backends["123456789012"]["aws"]
        if self.bucket not in backend.buckets:
            backend.create_bucket(self.bucket, "us-east-1")

    def stop(self) -> None:
        self._server.stop()
        self._server._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a client finds the server."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
            "AWS_REGION": "us-east-1",
        }

    def clear(self) -> None:
        """Delete all objects."""
        obstore.delete(self._client(), self.names())

    def _client(self) -> S3Store:
        return S3Store(self.bucket, client_options={"allow_http": True})

    def names(self, prefix: str = "") -> list[str]:
        """The names of the objects below a prefix."""
        return [meta["path"] for batch in obstore.list(self._client(), prefix or None) for meta in batch]


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server that runs while inside."""
    server = S3Server()
    try:
        with mock.patch.dict(os.environ, server.environment):
            yield server
    finally:
        server.stop()
