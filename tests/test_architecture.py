"""The layers and the package are complete, SQL stands in files, and no file names a path of a machine.

``lint-imports`` says whether imports point down, and ruff whether each module has a docstring.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.listing import require_none

ROOT = Path(__file__).parent.parent
DATA = sorted(path for path in (ROOT / "crawler").rglob("*.*") if path.suffix not in (".py", ".pyc") and path.is_file())
#: The beginning of a statement, or of a part of one. BEGIN, COMMIT and ROLLBACK are free: they ask for nothing.
SQL = re.compile(
    r"[\s(]*(?:SELECT|INSERT|REPLACE|UPDATE|DELETE|WITH|CREATE|DROP|ALTER|PRAGMA|ATTACH|ANALYZE|EXPLAIN|VALUES"
    r"|FROM|JOIN|LEFT JOIN|WHERE|GROUP BY|ORDER BY|LIMIT|UNION|ON CONFLICT)\b.",
    re.DOTALL,
)


def test_the_layers_name_every_module_and_package() -> None:
    """A package stands in the layers itself, or each of its parts does."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = {name for layer in layers for name in layer.split(" | ")}

    def unnamed(folder: Path, package: str) -> list[str]:
        found = []
        for path in sorted(folder.iterdir()):
            name = f"{package}.{path.stem}"
            is_package = (path / "__init__.py").is_file()
            if name in named or path.stem == "__init__" or not (is_package or path.suffix == ".py"):
                continue
            is_divided = any(other.startswith(f"{name}.") for other in named)
            found += unnamed(path, name) if is_package and is_divided else [name]
        return found

    assert unnamed(ROOT / "crawler", "crawler") == []


def test_the_package_contains_every_data_file() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["crawler"]
    packaged = {path for pattern in package for path in (ROOT / "crawler").glob(pattern)}
    assert [path for path in DATA if path not in packaged] == []


def test_sql_stands_in_files() -> None:
    """Outside ``crawler/store`` no string of a module is a statement, or continues one; docstrings are ignored."""
    modules = [path for path in (ROOT / "crawler").rglob("*.py") if ROOT / "crawler" / "store" not in path.parents]
    assert len(modules) > 100
    require_none(f"{path}:{line}: {text}" for path in modules for line, text in _sql_in(path.read_text()))


@pytest.mark.parametrize(
    "line",
    [
        "'SELECT 1 FROM t'",
        "'INSERT OR IGNORE ' 'INTO t VALUES (1)'",
        "f'SELECT {x}'",
        "f'{x} WHERE {y}'",
        "'\\n  PRAGMA x'",
    ],
)
def test_sql_is_recognised(line: str) -> None:
    assert [place for place, _ in _sql_in(f"x = 'y'\nx = y = {line}")] == [2]


def _sql_in(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each string that is SQL, without docstrings. Expressions in a string are left out."""
    nodes = list(ast.walk(ast.parse(source)))
    parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    ignored = parts | {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        text = None
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in ignored:
            text = node.value
        if text is not None and SQL.match(text):
            yield node.lineno, text


def test_nothing_names_the_machine_it_was_made_on() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in tracked.split("\0") if name]
    assert len(paths) > 50
    machine = re.compile(rb"(?<![\w.])/(?:home/(?!user\d)|Users/|work/|root/|mnt/)\w+")  # /home/user1: the 1997 draft's
    texts = {path: path.read_bytes() for path in paths if path.is_file()}
    require_none(f"{path}: {found.group().decode()}" for path in texts for found in machine.finditer(texts[path]))
