"""The table of extras names the packages that ``pyproject.toml`` installs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from crawler.errors import EXTRAS

_IMPORTED_AS = {"google-re2": "re2", "html-to-markdown": "html_to_markdown"}
_BESIDE = {"scipy": ("numpy",)}  # installed with it, and imported by the same modules


def test_the_table_of_extras_is_that_of_the_project() -> None:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())["project"]
    declared = {
        extra: {
            imported
            for need in needs
            for name in [re.split(r"[<>=\[]", need)[0]]
            for imported in (_IMPORTED_AS.get(name, name), *_BESIDE.get(name, ()))
        }
        for extra, needs in project["optional-dependencies"].items()
        if extra not in ("all", "docs", "dev")
    }
    assert declared == {extra: set(packages) for extra, packages in EXTRAS.items()}
