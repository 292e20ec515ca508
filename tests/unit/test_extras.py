"""The table of extras names the packages that ``pyproject.toml`` installs."""

from __future__ import annotations

import re
import subprocess
import sys
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


def test_every_command_can_be_loaded_without_an_extra() -> None:
    """So that a command can say which extra it needs. ``None`` in ``sys.modules`` makes an import fail."""
    packages = sorted({package for names in EXTRAS.values() for package in names})
    root = Path(__file__).parents[2]
    commands = [".".join(path.relative_to(root).with_suffix("").parts) for path in root.glob("crawler/**/commands.py")]
    assert len(commands) > 15
    code = (
        f"import sys, importlib; sys.modules |= dict.fromkeys({packages}); [*map(importlib.import_module, {commands})]"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
