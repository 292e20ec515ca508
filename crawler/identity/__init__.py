"""The identity of a crawler: its keys (``keys``), and the requests that ``signer`` signs by ``signatures``.

``publish`` writes the page about the crawler and the key directory. Needs the extra ``identity``.
"""

from typing import Any

from crawler.errors import require


def load(name: str) -> Any:
    """A module of this package, by name. Raises :class:`UsageError` if the extra that it needs is not installed."""
    return require("identity", "the identity of a crawler", f"crawler.identity.{name}")
