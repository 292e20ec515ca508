"""Imports point down, SQL stands in files, modules have docstrings, and no file names a path of a machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "crawler").rglob("*.py"))
DATA = sorted(path for path in (ROOT / "crawler").rglob("*.*") if path.suffix not in (".py", ".pyc") and path.is_file())
OUTSIDE_STORE = [path for path in MODULES if ROOT / "crawler" / "store" not in path.parents]
#: The beginning of a statement, or of a part of one. BEGIN, COMMIT and ROLLBACK are free: they ask for nothing.
SQL = re.compile(
    r"[\s(]*(?:SELECT|INSERT|REPLACE|UPDATE|DELETE|WITH|CREATE|DROP|ALTER|PRAGMA|ATTACH|ANALYZE|EXPLAIN|VALUES"
    r"|FROM|JOIN|LEFT JOIN|WHERE|GROUP BY|ORDER BY|LIMIT|UNION|ON CONFLICT)\b.",
    re.DOTALL,
)


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def test_imports_point_down() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()", "--no-cache"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", result.stdout)


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


@pytest.mark.parametrize("module", MODULES, ids=names(MODULES))
def test_a_module_has_a_docstring(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text())), "no docstring"


@pytest.mark.parametrize("module", OUTSIDE_STORE, ids=names(OUTSIDE_STORE))
def test_sql_stands_in_files(module: Path) -> None:
    """Outside ``crawler/store`` no string of a module is a statement, or continues one; docstrings are ignored."""
    tree = ast.parse(module.read_text())
    assert [text for text in _strings(tree) if SQL.match(text)] == []


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
    assert any(SQL.match(text) for text in _strings(ast.parse(f"x = y = {line}")))


def _strings(tree: ast.Module) -> list[str]:
    """The strings of a module, without docstrings, and those with expressions as one string without these."""
    parts = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    ignored = parts | {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            texts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            found.append("".join(map(str, texts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in ignored:
            found.append(node.value)
    return found


def test_nothing_names_the_machine_it_was_made_on() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in tracked.split("\0") if name]
    assert len(paths) > 50
    machine = re.compile(rb"(?<![\w.])/(?:home/(?!user\d)|Users/|work/|root/|mnt/)\w+")  # /home/user1: the 1997 draft's
    found = {
        str(path.relative_to(ROOT)): match.group().decode()
        for path in paths
        if path.is_file() and (match := machine.search(path.read_bytes()))
    }
    assert found == {}
