"""The objects of a dataset: in a folder, or in S3 through obstore."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from crawler.errors import NoStore, StoreError, UsageError, require
from crawler.store.location import is_url, shown

T = TypeVar("T")
#: The pauses before further tries of a call that failed, in seconds. Calls are made in threads.
_TRY_AGAIN_AFTER_S = (0.1, 0.5, 2.0)


class Objects:
    """Objects by key, below ``location``: a folder, or ``s3://bucket/prefix``.

    An object appears whole or not at all. A call that fails is repeated; an error that lasts becomes
    :class:`StoreError`.
    """

    def __init__(self, location: str, *, may_make: bool = False) -> None:
        """Raises :class:`NoStore` for a folder that does not exist, unless it may be made."""
        if not may_make and not is_url(location) and not Path(location).is_dir():
            raise NoStore(f"{location}: there is no dataset")
        self.location = location if is_url(location) else str(Path(location).resolve())
        self._obstore = require("rounds", "a dataset", "obstore")
        self._errors = require("rounds", "a dataset", "obstore.exceptions")
        stores = require("rounds", "a dataset", "obstore.store")
        try:
            self._store: Any = self._s3(stores) if is_url(location) else stores.LocalStore(self.location, mkdir=True)
        except (self._errors.BaseError, ValueError, OSError) as error:
            raise UsageError(f"{shown(location)}: {str(error).splitlines()[0]}") from None

    def _s3(self, stores: Any) -> Any:
        if not self.location.startswith("s3://"):
            raise UsageError(f"{shown(self.location)}: a dataset is a folder, or s3://bucket/prefix")
        bucket, _, prefix = self.location.removeprefix("s3://").partition("/")
        allows_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"
        options = {"allow_http": allows_http, "timeout": timedelta(seconds=60)}
        # Calls are tried again here, alike for folders and object storage.
        once = {"max_retries": 0}
        return stores.S3Store(bucket, prefix=prefix or None, client_options=options, retry_config=once)

    def get(self, key: str) -> bytes | None:
        """The content of an object; ``None`` if there is none."""
        try:
            return self._tried(key, lambda: bytes(self._obstore.get(self._store, key).bytes()))
        except (FileNotFoundError, self._errors.NotFoundError):
            return None

    def fetch(self, key: str, path: Path) -> None:
        """Write an object to the file ``path``. Raises :class:`StoreError` if there is none."""

        def copy() -> None:
            with path.open("wb") as file:
                for chunk in self._obstore.get(self._store, key):
                    file.write(chunk)

        try:
            self._tried(key, copy)
        except (FileNotFoundError, self._errors.NotFoundError) as error:
            raise self._failed(key, error) from error

    def put(self, key: str, content: bytes | Path) -> None:
        """Write an object, in place of one with that key."""
        self._write(key, content)

    def create(self, key: str, content: bytes) -> bool:
        """Write an object if there is none with that key; returns whether the object with that key has this content.

        A storage may answer a repeated request that the object exists, because the first request has made it. The
        content tells whether it was this caller, so it must be of this caller alone.
        """
        try:
            self._write(key, content, mode="create", use_multipart=False)
        except self._errors.AlreadyExistsError:
            return self.get(key) == content
        return True

    def _write(self, key: str, content: bytes | Path, **how: Any) -> None:
        try:
            self._tried(key, lambda: self._obstore.put(self._store, key, content, **how))
        except (FileNotFoundError, self._errors.NotFoundError):
            raise UsageError(f"{shown(self.location)}: this bucket does not exist in the object storage") from None

    def written_at(self, key: str) -> float:
        """When an object was written, by the clock of the storage, in epoch seconds; some storages cut the fraction."""
        return self._tried(key, lambda: float(self._obstore.head(self._store, key)["last_modified"].timestamp()))

    def keys(self, folder: str) -> list[str]:
        """The keys of the objects below a folder."""

        def found() -> list[str]:
            return [meta["path"] for batch in self._obstore.list(self._store, f"{folder}/") for meta in batch]

        return self._tried(folder, found)

    def delete(self, keys: list[str]) -> None:
        """Delete objects."""
        if keys:
            with suppress(FileNotFoundError, self._errors.NotFoundError):  # another driver has deleted them
                self._tried(keys[0], lambda: self._obstore.delete(self._store, keys))

    def _tried(self, key: str, call: Callable[[], T]) -> T:
        """The result of a call, which is repeated a few times if the storage fails. Raises :class:`StoreError`."""
        tries = iter(_TRY_AGAIN_AFTER_S)
        while True:
            try:
                return call()
            except (FileNotFoundError, self._errors.NotFoundError, self._errors.AlreadyExistsError):
                raise
            except (OSError, self._errors.BaseError) as error:
                pause_s = next(tries, None)
                if pause_s is None:
                    raise self._failed(key, error) from error
                time.sleep(pause_s)

    def local(self, keys: list[str], folder: Path) -> list[str]:
        """The paths of files with the content of these objects; those of object storage are copied into ``folder``."""
        if not is_url(self.location):
            return [f"{self.location}/{key}" for key in keys]
        paths = []
        for key in keys:
            path = folder / key
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                self.fetch(key, path)
            paths.append(str(path))
        return paths

    def _failed(self, key: str, error: Exception) -> StoreError:
        return StoreError(f"{shown(self.location)}: {key}: {str(error).splitlines()[0][:300]}")
