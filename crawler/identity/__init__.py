"""The identity of a crawler: its keys (``keys``), signed requests (``signer``), and the key directory (``directory``).

Needs the extra ``identity``.
"""

from importlib import import_module
from types import ModuleType

from crawler.errors import missing_extra

_PACKAGES = ("cryptography", "jinja2")


def load(name: str) -> ModuleType:
    """A module of this package, by name. Raises :class:`UsageError` if the extra that it needs is not installed."""
    try:
        return import_module(f"crawler.identity.{name}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        raise missing_extra(f"the identity of a crawler needs {package}", "identity") from None
