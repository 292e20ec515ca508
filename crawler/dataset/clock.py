"""The clock of the storage of a dataset, which all machines follow, as workers on a database follow its clock."""

from __future__ import annotations

import os

from crawler.clock import SystemClock, boot_s
from crawler.dataset.objects import Objects

#: By how much the clocks of two processes differ at most after both have looked, in seconds, unless the storage was
#: very slow.
DIFFER_S = 2.0
_LOOKS = 3
_WHOLE_SECONDS = 1.0


class StorageClock(SystemClock):
    """The clock of this machine, corrected by :meth:`look` if the storage shows another time."""

    def __init__(self, objects: Objects) -> None:
        super().__init__()
        self._objects = objects
        self.look()

    def look(self) -> None:
        """Write an object and see when the storage has written it. The fastest of some tries counts."""
        key, looks = f"clocks/{os.urandom(8).hex()}", list[tuple[float, float, float]]()
        for _ in range(_LOOKS):
            began = boot_s()
            self._objects.put(key, b"")
            written_at = self._objects.written_at(key)
            looks.append((boot_s() - began, written_at, boot_s()))
        self._objects.delete([key])
        took_s, written_at, read_at = min(looks)
        self.follow(written_at, written_at + _WHOLE_SECONDS + took_s, read_at)
