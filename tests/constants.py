"""Other values for the constants of the settings: the fields of a section without a key in TOML."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock


def constants(section: type[Any], **values: object) -> AbstractContextManager[object]:
    """While inside, new settings of this process have ``values`` in the fields of ``section``."""
    parameters = inspect.signature(section).parameters
    assert set(values) <= set(parameters)
    defaults = tuple(values.get(name, parameter.default) for name, parameter in parameters.items())
    return mock.patch.object(section.__init__, "__defaults__", defaults)
