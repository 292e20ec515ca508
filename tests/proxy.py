"""A proxy before a database that can disturb its connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.threaded import Threaded

#: Connections closed at once (and refused meanwhile); every piece held up; closed in one direction only; all that comes
#: swallowed, and nothing closed.
MODES = ("drop", "delay", "half-close", "swallow")

_DELAY_S = 0.15
_PIECE = 1 << 16


class Proxy(Threaded):
    """Forward connections to ``port`` of 127.0.0.1 to a Unix socket, in a separate thread."""

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._target = target
        self._mode: str | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.refused = 0  # connections

    def suffer(self, mode: str) -> None:
        """Disturb connections until :meth:`recover`."""
        self._mode = mode
        self._loop.call_soon_threadsafe(self._begin, mode)

    def recover(self) -> None:
        """Connections that have lost data stay lost; other and new connections work."""
        self._mode = None

    async def recover_when_missed(self) -> None:
        """Recover when a connection was refused."""
        refused = self.refused
        while self.refused == refused:  # noqa: ASYNC110  the server has a thread of its own
            await asyncio.sleep(0.01)
        self.recover()

    def _begin(self, mode: str) -> None:
        for writer in list(self._writers):
            if mode == "drop":
                writer.transport.abort()
            elif mode == "half-close" and writer.can_write_eof() and not writer.is_closing():
                writer.write_eof()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        async with server:
            await self._stop.wait()
            for writer in list(self._writers):
                writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._mode == "drop":
                self.refused += 1
                raise ConnectionRefusedError
            there_reader, there_writer = await asyncio.open_unix_connection(str(self._target))
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there_writer}
        await asyncio.gather(self._pass_on(reader, there_writer), self._pass_on(there_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        swallowed = False
        try:
            while piece := await reader.read(_PIECE):
                if self._mode == "delay":
                    await asyncio.sleep(_DELAY_S)
                swallowed = swallowed or self._mode == "swallow"
                if not swallowed:  # data after a gap would be meaningless
                    writer.write(piece)
                    await writer.drain()
        except (OSError, RuntimeError):  # RuntimeError: closed in this direction by half-close
            pass
        finally:
            writer.close()
            self._writers.discard(writer)
