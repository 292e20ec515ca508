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
from crawler.settings.keys import KEYS
from crawler.store.views import VIEWS
from tests.listing import require_none

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
    "METHODS.md": "a file of a data appendix",
    "recipe.py": "a file of a data appendix",
    "variables/NAME.py": "a file of a data appendix",
    "url.id": "a column of the store",
    "migrations/NNNN.sql": "a pattern",
    "store/sql/migrations/NNNN.sql": "a pattern",
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


def prose_of(page: str) -> str:
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)


def docstrings_and_comments(source: str) -> str:
    """What a module says in prose."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, owners)]
    return "\n".join([*texts, *(line.partition("#")[2] for line in source.splitlines() if "#" in line)])


def test_every_name_in_a_document_exists() -> None:
    assert len(PAGES) > 20
    texts = {path: prose_of(path.read_text()) for path in PAGES}
    require_none(f"{path}: {name}" for path, text in texts.items() for name in quoted(text) if is_wrong(name))


def test_every_name_in_a_docstring_exists() -> None:
    assert len(MODULES) > 200
    texts = {path: docstrings_and_comments(path.read_text()) for path in MODULES}
    require_none(f"{path}: {name}" for path, text in texts.items() for name in quoted(text) if is_wrong(name))


@pytest.mark.parametrize("name", ["crawler.url.no_such", "store/no_such.py", "Gate.no_such", "url.no_such"])
def test_a_name_that_does_not_exist_is_found(name: str) -> None:
    document = f"`x` ``{name}``\n```\n`crawler.no_prose`\n```\n"
    assert [found for found in quoted(prose_of(document)) if is_wrong(found)] == [name]
    source = f"# `x`, `{name}`\ndef f():\n    'See ``{name}``.'\n    return '`{name}`'"
    assert [found for found in quoted(docstrings_and_comments(source)) if is_wrong(found)] == [name] * 2
