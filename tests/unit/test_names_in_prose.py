"""Every name of code or of a file in the documents and docstrings exists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pydoc
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import crawler
from crawler.export.view_columns import VIEWS
from crawler.settings.keys import KEYS

ROOT = Path(crawler.__file__).parents[1]
PAGES = [*(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")), *(ROOT / "docs").rglob("*.md")]
MODULES = sorted((ROOT / "crawler").rglob("*.py"))

CODE = re.compile(r"``([^`\n]+)``|(?<!`)`([^`\n]+)`(?!`)")
FILE = re.compile(r"[\w.*-]+(/[\w.*-]+)*\.(py|md|sql|toml|j2|js|css|html)|(crawler|tests|docs)(/[\w-]+)+/?")
DOTTED = re.compile(r"[a-z_]+(\.\w+)+")
MEMBER = re.compile(r"[A-Z]\w+\.[a-z_]\w*")

#: Names that only look like ours.
FOREIGN = {
    "audit.json": "a file of a data appendix",
    "url.deaths": "a column of the store",
    "url.id": "a column of the store",
}


@cache
def files() -> frozenset[str]:
    """The paths of all files and folders of the project, and their ends: ``store/keys.py``, ``keys.py``."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    parts = [Path(path).parts for path in listed]
    paths = {path[:end] for path in parts for end in range(1, len(path) + 1)}
    return frozenset("/".join(path[start:]) for path in paths for start in range(len(path)))


@cache
def classes() -> dict[str, list[type]]:
    """The classes of the project, by name."""
    found: dict[str, list[type]] = {}
    for path in MODULES:
        names = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
        module = importlib.import_module(
            ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        )
        for name in names:
            found.setdefault(name, []).append(getattr(module, name))
    return found


def has(owner: object, name: str) -> bool:
    """Whether ``owner`` has an attribute, or declares that its instances have it."""
    declared = [vars(each).get("__annotations__", {}) for each in getattr(owner, "__mro__", ())]
    return hasattr(owner, name) or any(name in names for names in declared)


def resolves(name: str) -> bool:
    """Whether a dotted name below ``crawler`` is a module, or an attribute of one."""
    module, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return bool(module) and resolves(module) and has(pydoc.locate(module), last)
    return True


def is_wrong(name: str) -> bool:
    """Whether ``name`` is written like a name of ours, and there is none."""
    name = name.removesuffix("()").lstrip("~")
    first = name.partition(".")[0]
    if name in FOREIGN:
        return False
    if first == "crawler" and DOTTED.fullmatch(name):  # also crawler.store.sql
        return not resolves(name)
    if FILE.fullmatch(name):
        return "*" not in name and name.rstrip("/") not in files()
    if MEMBER.fullmatch(name):
        owners = classes().get(first, [])
        return bool(owners) and not any(has(owner, name.partition(".")[2]) for owner in owners)
    if not DOTTED.fullmatch(name) or name in KEYS or first in VIEWS:
        return False
    return importlib.util.find_spec(f"crawler.{first}") is not None and not resolves(f"crawler.{name}")


def quoted(text: str) -> Iterator[str]:
    """The texts in backticks."""
    return (found[1] or found[2] for found in CODE.finditer(text))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_name_in_a_document_exists(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert sorted({name for name in quoted(text) if is_wrong(name)}) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_name_in_a_docstring_exists(path: Path) -> None:
    tree = ast.parse(path.read_text())
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, owners)]
    comments = [line.partition("#")[2] for line in path.read_text().splitlines() if "#" in line]
    assert sorted({name for text in (*texts, *comments) for name in quoted(text) if is_wrong(name)}) == []
