"""The identity of a crawler: its keys (``keys``), signed requests (``signer``), and the key directory (``directory``).

Needs the extra ``identity``.
"""

from importlib import import_module
from types import ModuleType

from crawler.errors import requiring


def load(name: str) -> ModuleType:
    """A module of this package, by name. Raises :class:`UsageError` if the extra that it needs is not installed."""
    with requiring("identity", "the identity of a crawler", "cryptography", "jinja2"):
        return import_module(f"crawler.identity.{name}")
