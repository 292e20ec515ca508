"""Documents from Jinja2 templates: every value is escaped, and an undefined one is an error.

Needs Jinja2, which the extras with such documents bring.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

# Control characters, lone surrogates, and characters that change the direction of the text after them.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def template_environment(package: str, *, finalize: Callable[[object], object] | None = None) -> Environment:
    """The environment of the templates in ``package``.

    ``finalize`` is applied to each value before it is escaped: :func:`fit` if the pages show text of strangers.
    """
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def fit(value: object) -> object:
    """``value`` with U+FFFD for each character that is unfit for a page, such as a control character."""
    return _UNFIT.sub("\ufffd", value) if isinstance(value, str) and not isinstance(value, Markup) else value
