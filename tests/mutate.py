"""Change the crawler at random places, and see whether a test fails: ``python -m tests.mutate --count N --seed S``.

A mutation is one small change of one module. It is killed if a test fails, and it survives if none does. A survivor is
a rule that no test holds, code that does nothing, or a change that nobody can observe.

Not drawn is what finds little: changes that mypy refuses; a reversed condition, because each test of the condition
fails with it, while a condition that is always true or always false needs two tests; and a neighbour of a figure above
10, which is a choice: it becomes ten times or a tenth of itself.

1. The map: the tests run once on a copy of the tree in which each block of code notes that it was executed, also in
   the processes that a test starts. The map is kept for later runs. For a module that has changed since, it tells
   which tests execute anything of it; delete the file to have it made anew.
2. Each mutation alone: the tests that execute its block, the unit tests of its room first and then the cheapest files,
   up to a limit of their time.
3. The survivors together, in one tree: all tests. Each test that fails is repeated on each survivor alone, and on the
   tree as it is. This is repeated without the killed ones until no test fails.

``--at FILE:LINE`` makes all mutations of one line or file instead: does a test hold what was just written?

``cosmic-ray`` runs one command for all mutations, which here takes minutes of processor time for each. ``mutmut``
selects tests, but it sees only the functions that pytest's own process calls, and passes over functions with
decorators.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import mmap
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("robots", "frontier", "engine", "store", "page", "sampling")
QUICK = tuple(f"tests/{each}" for each in ("unit", "conformance", "property", "contract", "simulation"))
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".*_cache", "*.egg-info", "build")

_PROCESSES = 2
_ALONE_S = 60.0  # of their recorded time, the tests that a mutation alone must pass
_START_S = 120.0  # an interpreter and the collection of the tests take less, on a busy machine
_MOST_BYTES = 6 << 30  # a mutation may take all memory there is

# The variables by which this script tells the pytest that it starts what to do.
_CHOSEN = "MUTATE_CHOSEN"  # a file with the tests to run, in their order
_FAILED = "MUTATE_FAILED"  # a file for the tests that begin and fail
_HITS = "MUTATE_HITS"  # a folder for what each test executes
_SHARED = "MUTATE_SHARED"  # the file that all processes of a test have in memory, one octet for each block


# ---- Mutations


@dataclass(frozen=True, slots=True)
class Mutation:
    """The change of the octets ``start`` to ``end`` of a file.

    ``blocks`` are the blocks of code in which it has an effect, each as the line of its first statement; empty: the
    whole module. A constant of a module has an effect in the blocks that read it.
    """

    path: str
    line: int
    blocks: tuple[int, ...]
    start: int
    end: int
    new: str
    what: str

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}:{self.line}"

    def applied(self, source: bytes) -> bytes:
        """The source with the change."""
        return source[: self.start] + self.new.encode() + source[self.end :]


_BOUNDS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
_NAMES = {"any": "all", "all": "any"}
_FEW = 10  # a larger figure is a choice, and its neighbour is as good: it is changed tenfold
_RETURNED = {"bool": ("True", "False"), "int": ("0", "1"), "float": ("0.0",), "str": ("''",), "bytes": ("b''",)}
_EMPTY = {"list": "[]", "dict": "{}", "set": "set()", "tuple": "()"}
_NOT_CODE = ("annotation", "returns", "decorator_list", "type_params", "bases", "keywords_of_class", "pattern")


def mutations(path: str, source: bytes) -> list[Mutation]:
    """All mutations of a module."""
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    statements = ast.parse(source).body
    readers: dict[str, set[int]] = defaultdict(set)
    for node, block, _ in (each for statement in statements for each in _nodes(statement, None, None)):
        if isinstance(node, ast.Name) and block is not None:
            readers[node.id].add(block)
    found = []
    for statement in statements:
        reading = sorted(block for name in _assigned(statement) for block in readers[name])
        for node, block, function in _nodes(statement, None, None):
            blocks = tuple(reading) if block is None else (block,)
            for old, new, what in _changes(node, function):
                start = starts[old.lineno - 1] + old.col_offset
                end = starts[(old.end_lineno or old.lineno) - 1] + (old.end_col_offset or 0)
                found.append(Mutation(path, old.lineno, blocks, start, end, new, what))
    return found


def _assigned(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _nodes(
    node: ast.AST, block: int | None, function: Function | None
) -> Iterator[tuple[ast.AST, int | None, Function | None]]:
    """All nodes that are code, with the block and the function in which they are."""
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return
    yield node, block, function
    inside = node if isinstance(node, Function) else function
    for name, value in ast.iter_fields(node):
        if name in _NOT_CODE:
            continue
        children = value if isinstance(value, list) else [value]
        there = _block(children) if inside is not None and _is_suite(value) else block
        for child in children:
            if isinstance(child, ast.AST):
                yield from _nodes(child, there, inside)


def _is_suite(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], ast.stmt)


def _block(suite: Sequence[ast.stmt]) -> int:
    return suite[min(_has_docstring(suite), len(suite) - 1)].lineno


def _has_docstring(suite: Sequence[ast.stmt]) -> bool:
    first = suite[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _changes(node: ast.AST, function: Function | None) -> Iterator[tuple[ast.stmt | ast.expr, str, str]]:
    """The changes of one node: the part that is replaced, the text in its place, and what this does."""
    match node:
        case ast.Compare():
            for n, operator in enumerate(node.ops):
                if type(operator) in _BOUNDS:
                    yield _replaced(node, ops=[*node.ops[:n], _BOUNDS[type(operator)](), *node.ops[n + 1 :]])
        case ast.BoolOp():
            for n in range(len(node.values)):
                rest = [*node.values[:n], *node.values[n + 1 :]]
                yield _replaced(node, values=rest) if len(rest) > 1 else _instead(node, rest[0])
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            yield _instead(node, node.left)
            yield _instead(node, node.right)
        case ast.BinOp() if type(node.op) in _OPERATORS:
            yield _replaced(node, op=_OPERATORS[type(node.op)]())
        case ast.UnaryOp(op=ast.USub()):
            yield _instead(node, node.operand)
        case ast.Constant(value=bool()):
            yield _instead(node, ast.Constant(not node.value))
        case ast.Constant(value=int() | float() as number):
            for other in _figures(number):
                yield _instead(node, ast.Constant(other))
        case ast.Name(ctx=ast.Load()) if node.id in _NAMES:
            yield _instead(node, ast.Name(_NAMES[node.id]))
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_]) if not _has_stars(node):
            for n in range(len(node.args)):
                rest = [*node.args[:n], *node.args[n + 1 :]]
                yield _replaced(node, args=rest) if len(rest) > 1 else _instead(node, rest[0])
        case ast.Call():
            if len(node.args) > 1 and not _has_stars(node) and _differ(*node.args[:2]):
                yield _replaced(node, args=[node.args[1], node.args[0], *node.args[2:]])
            for n, keyword in enumerate(node.keywords):
                if keyword.arg not in (None, "strict"):  # zip() and sum types are strict to find errors of ours
                    old, new, _ = _replaced(node, keywords=[*node.keywords[:n], *node.keywords[n + 1 :]])
                    yield old, new, f"{_short(node.func)}(…) without {_short(keyword)}"
        case ast.If() | ast.IfExp() | ast.While() if not isinstance(node.test, ast.Constant):
            yield from _conditions(node.test, endless=isinstance(node, ast.While))
        case ast.comprehension():
            for test in node.ifs:
                yield from _conditions(test)
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() | ast.keyword() if _is_truth(node.value):
            assert node.value is not None
            yield from _conditions(node.value)
        case ast.Return(value=ast.Constant(value=bool())):
            return
        case ast.Return(value=ast.expr() as returned):
            for value in _returned(returned, function):
                yield returned, value, f"return {_short(returned)} → return {value}"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield node, "pass", f"{_short(node)} → pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) if function and function.name != "__init__":
            yield node, "pass", f"{_short(node)} → pass"


def _replaced(node: ast.expr, **fields: Any) -> tuple[ast.expr, str, str]:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return _instead(node, other)


def _instead(node: ast.expr, other: ast.expr) -> tuple[ast.expr, str, str]:
    return node, f"({ast.unparse(other)})", f"{_short(node)} → {_short(other)}"


def _differ(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) != ast.dump(other)


def _has_stars(call: ast.Call) -> bool:
    return any(isinstance(each, ast.Starred) for each in call.args)


def _is_truth(value: ast.expr | None) -> bool:
    is_negation = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    return is_negation or isinstance(value, ast.Compare | ast.BoolOp)


def _figures(number: float) -> tuple[float, ...]:
    if isinstance(number, int) and abs(number) <= _FEW:
        return (number + 1, number - 1) if number > 0 else (number + 1,)
    return (number * 10, number // 10 if isinstance(number, int) else number / 10) if number else (1.0,)


def _conditions(test: ast.expr, *, endless: bool = False) -> Iterator[tuple[ast.expr, str, str]]:
    if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
        return
    for value in (False,) if endless else (True, False):
        yield _instead(test, ast.Constant(value))


def _returned(value: ast.expr, function: Function | None) -> tuple[str, ...]:
    annotation = "" if function is None or function.returns is None else ast.unparse(function.returns)
    empty = _EMPTY.get(annotation.partition("[")[0])
    constants = _RETURNED.get(annotation, (empty,) if empty is not None else ("None",))
    return tuple(constant for constant in constants if constant != ast.unparse(value))


def _short(node: ast.AST, most: int = 70) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


# ---- The map


class _Noting(ast.NodeTransformer):
    """Let each block of a module note that it is executed."""

    def __init__(self, path: str, blocks: list[str]) -> None:
        self._path, self._blocks = path, blocks
        self._functions = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        self._functions += isinstance(node, Function)
        suites = [suite for _, suite in ast.iter_fields(node) if _is_suite(suite)] if self._functions else []
        for suite in suites:
            self._blocks.append(f"{self._path}:{_block(suite)}")
        numbers = range(len(self._blocks) - len(suites), len(self._blocks))
        super().generic_visit(node)
        for suite, number in zip(suites, numbers, strict=True):
            suite.insert(int(_has_docstring(suite)), ast.parse(f"_executed[{number}] = 1").body[0])
        self._functions -= isinstance(node, Function)
        return node


_NOTES = f"""
import mmap, os
def opened():
    if "{_SHARED}" not in os.environ:
        return bytearray(SIZE)
    with open(os.environ["{_SHARED}"], "r+b") as file:
        return mmap.mmap(file.fileno(), SIZE)
executed = opened()
"""


def note_blocks(tree: Path, folders: Collection[str]) -> list[str]:
    """Rewrite the modules of a copied tree so that they note what is executed; returns the blocks."""
    blocks: list[str] = []
    for path in modules(tree, folders):
        module = ast.parse((tree / path).read_bytes())
        _Noting(path, blocks).visit(module)
        place = int(bool(module.body) and _has_docstring(module.body))
        place += sum(isinstance(each, ast.ImportFrom) and each.module == "__future__" for each in module.body)
        module.body.insert(place, ast.parse("from executed_blocks import executed as _executed").body[0])
        (tree / path).write_text(ast.unparse(ast.fix_missing_locations(module)))
    (tree / "executed_blocks.py").write_text(_NOTES.replace("SIZE", str(len(blocks))))
    return blocks


def modules(tree: Path, folders: Collection[str]) -> list[str]:
    """The modules of these folders of the crawler."""
    return sorted(str(path.relative_to(tree)) for each in folders for path in (tree / "crawler" / each).rglob("*.py"))


@dataclass
class Map:
    """What the tests execute: the seconds of each test, and the numbers of its ``blocks``.

    ``hashes`` are those of the modules for which it was made.
    """

    blocks: list[str]
    hashes: dict[str, str]
    files: list[str] = field(default_factory=list)
    took_s: dict[str, float] = field(default_factory=dict)
    executed: dict[str, list[int]] = field(default_factory=dict)

    def covering(self, mutation: Mutation) -> list[str]:
        """The tests that execute the blocks of a mutation, or its module: those of its room, then the cheapest files.

        For a module that has changed since, these are the tests that executed anything of it.
        """
        is_same = self.hashes.get(mutation.path) == _hash(ROOT / mutation.path)
        places = {f"{mutation.path}:{line}" for line in mutation.blocks}
        if not is_same or places.isdisjoint(self.blocks):
            places = {block for block in self.blocks if block.partition(":")[0] == mutation.path}
        wanted = {number for number, block in enumerate(self.blocks) if block in places}
        tests = [test for test, executed in self.executed.items() if not wanted.isdisjoint(executed)]
        files: dict[str, float] = defaultdict(float)
        for test in tests:
            files[_file(test)] += self.took_s[test]
        room = f"tests/unit/{mutation.path.split('/')[1]}/"
        return sorted(tests, key=lambda test: (not test.startswith(room), files[_file(test)], _file(test)))


def _hash(module: Path) -> str:
    return hashlib.sha256(module.read_bytes()).hexdigest() if module.exists() else ""


def _file(test: str) -> str:
    return test.partition("::")[0]


def load_map(place: Path, files: Collection[str], scratch: Path) -> Map:
    """The map at ``place``, made or completed if tests are missing there."""
    known = Map(**json.loads(place.read_text())) if place.exists() else Map([], {})
    if not known.files or set(files) - set(known.files):
        tree = copied(scratch / "map")
        hashes = {path: _hash(tree / path) for path in modules(tree, FOLDERS)}
        blocks = note_blocks(tree, FOLDERS)
        if known.hashes != hashes:
            known = Map(blocks, hashes)
        missing = [file for file in files if file not in known.files]
        hits = scratch / "hits"
        hits.mkdir()
        print(f"making the map of {' '.join(missing)}", flush=True)
        run_tests(tree, missing, {_HITS: str(hits)}, ("-n", str(_PROCESSES)), limit_s=None)
        for path in hits.glob("*.jsonl"):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            shared: dict[str, set[int]] = defaultdict(set)
            for row in rows:
                shared[_file(row["test"])].update(row["shared"])
            for row in rows:
                if row["passed"]:
                    known.took_s[row["test"]] = row["took_s"]
                    known.executed[row["test"]] = sorted({*row["executed"], *shared[_file(row["test"])]})
        known.files += missing
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(vars(known)))
    return known


# ---- Types


class Types:
    """The type check of a copied tree, by mypy's daemon, which looks again only at what depends on a change."""

    def __init__(self, place: Path) -> None:
        self._tree = Tree(place)
        self._status = place.parent / "mypy.json"

    def __enter__(self) -> Self:
        self._start()
        return self

    def _start(self) -> None:
        print("checking the types", flush=True)
        if self._mypy("run", "--", "crawler") != 0:
            sys.exit("mypy refuses the code as it is")

    def accept(self, mutation: Mutation) -> bool:
        """Whether mypy finds nothing wrong with a mutation."""
        with self._tree.changed([mutation]):
            if self._mypy("recheck") == 0:
                return True
        if self._mypy("recheck") == 0:
            return False
        self._mypy("stop")  # it did not notice that an earlier error is gone
        self._start()
        return self.accept(mutation)

    def __exit__(self, *_: object) -> None:
        self._mypy("stop")

    def _mypy(self, *arguments: str) -> int:
        command = [sys.executable, "-m", "mypy.dmypy", "--status-file", str(self._status), *arguments]
        environment = os.environ | {"PYTHONPATH": ""}
        return subprocess.run(
            command, cwd=self._tree.place, env=environment, capture_output=True, check=False
        ).returncode


# ---- Trees and runs of pytest


def copied(place: Path) -> Path:
    """A copy of this tree."""
    shutil.copytree(ROOT, place, ignore=NOT_COPIED)
    return place


@dataclass(frozen=True, slots=True)
class Ran:
    """How pytest ended. ``began`` is the last test that began."""

    code: int | None  # None: it took too long
    failed: list[str]
    began: str


def run_tests(
    tree: Path, files: Sequence[str], variables: dict[str, str], options: Sequence[str], limit_s: float | None
) -> Ran:
    """Run tests in a tree, in a group of processes of its own."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        notes = Path(folder) / "notes"
        notes.touch()
        environment = os.environ | {"PYTHONPATH": str(tree), _FAILED: str(notes)} | variables
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "pytest", "-p", "tests.mutate", "-p", "no:cacheprovider", "--tb=no"]
        with (Path(folder) / "output").open("wb") as output:
            process = subprocess.Popen(
                [*command, f"--basetemp={folder}/tmp", *options, *files],
                cwd=tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = _ended(process, limit_s)
            finally:
                _kill(process)
        lines = [line.split(" ", 1) for line in notes.read_text().splitlines()]
    began = [test for word, test in lines if word == "began"]
    return Ran(code, list(dict.fromkeys(test for word, test in lines if word == "failed")), began[-1] if began else "")


def _ended(process: subprocess.Popen[bytes], limit_s: float | None) -> int | None:
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest ends the servers that it has started
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Tree:
    """A copy of the tree to which mutations are applied."""

    def __init__(self, place: Path) -> None:
        self.place = copied(place)
        self._writes = 0

    def run(
        self,
        changes: Sequence[Mutation],
        tests: Sequence[str],
        options: Sequence[str],
        limit_s: float,
        files: Sequence[str] = (),
    ) -> Ran:
        """Run these tests, or all of ``files``, with some mutations."""
        with self.changed(changes):
            if not tests:
                return run_tests(self.place, files, {}, options, limit_s)
            chosen = self.place / "chosen.json"
            chosen.write_text(json.dumps(list(tests)))
            involved = list(dict.fromkeys(map(_file, tests)))
            return run_tests(self.place, involved, {_CHOSEN: str(chosen)}, options, limit_s)

    @contextmanager
    def changed(self, changes: Sequence[Mutation]) -> Iterator[None]:
        """Apply mutations inside the context."""
        originals = {path: (self.place / path).read_bytes() for path in {mutation.path for mutation in changes}}
        for path, source in originals.items():
            self._write(path, _mutated(source, [mutation for mutation in changes if mutation.path == path]))
        try:
            yield
        finally:
            for path, source in originals.items():
                self._write(path, source)

    def _write(self, path: str, source: bytes) -> None:
        self._writes += 1
        (self.place / path).write_bytes(source)
        os.utime(self.place / path, (self._writes, self._writes))  # else an older bytecode file may seem to be of it


def _mutated(source: bytes, changes: Sequence[Mutation]) -> bytes:
    for mutation in sorted(changes, key=lambda each: -each.start):  # from the end, so that the places stay true
        source = mutation.applied(source)
    return source


# ---- Inside the pytest that is started


if _HITS in os.environ:  # before the first module of the crawler is imported, by tests/conftest.py
    os.environ[_SHARED] = str(Path(os.environ[_HITS]) / f"{os.getpid()}.blocks")
    Path(os.environ[_SHARED]).write_bytes(bytes(1 << 16))


_EXIT_CODE = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Record what the tests execute, or bound the memory that a mutation takes."""
    if _HITS in os.environ:
        config.pluginmanager.register(_Recorder(Path(os.environ[_SHARED])))
    elif _CHOSEN in os.environ:
        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the chosen tests, in their order."""
    if _CHOSEN in os.environ:
        order = {test: n for n, test in enumerate(json.loads(Path(os.environ[_CHOSEN]).read_text()))}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note the test that begins, for the case that it does not end."""
    _note("began", nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a failure."""
    if report.failed:
        _note("failed", report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module that cannot be imported."""
    if report.failed:
        _note("failed", report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End at once: the threads of a store that a failed test has left open would keep the process for ever."""
    if _FAILED in os.environ and _HITS not in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        sys.stdout.flush()
        os._exit(config.stash.get(_EXIT_CODE, 1))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remember the exit code."""
    session.config.stash[_EXIT_CODE] = int(exitstatus)


def _note(word: str, test: str) -> None:
    if _FAILED in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(os.environ[_FAILED], "a", encoding="utf-8") as file:
            file.write(f"{word} {test}\n".replace("\n", " ").strip() + "\n")


class _Recorder:
    """Records the blocks that each test executes. What a fixture of several tests executes counts for all of them."""

    def __init__(self, place: Path) -> None:
        with place.open("r+b") as file:
            self._executed = mmap.mmap(file.fileno(), 0)
        self._rows = place.with_suffix(".jsonl").open("a", buffering=1, encoding="utf-8")
        self._empty = bytes(len(self._executed))
        self._shared: list[int] = []
        self._passed = True

    def _numbers(self) -> list[int]:
        return [number for number, executed in enumerate(self._executed[:]) if executed]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._executed[:] = self._empty
        self._shared, self._passed = [], True
        began = time.monotonic()
        yield
        row = {
            "test": item.nodeid,
            "took_s": round(time.monotonic() - began, 3),
            "passed": self._passed,
            "executed": self._numbers(),
            "shared": self._shared,
        }
        self._rows.write(json.dumps(row) + "\n")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        yield
        if fixturedef.scope != "function":
            self._shared = self._numbers()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._passed = self._passed and report.outcome == "passed"


# ---- The command


@dataclass
class Result:
    """What became of a mutation. ``killer``: the test that failed, or what happened instead; empty: it survived."""

    mutation: Mutation
    covering: int
    killer: str = ""


def alone(mutation: Mutation, known: Map, trees: SimpleQueue[Tree], budget_s: float) -> Result:
    """Run the cheapest of the tests that execute a mutation, until one fails."""
    tests = known.covering(mutation)
    result = Result(mutation, len(tests))
    took_s = 0.0
    affordable = []
    for test in tests:
        took_s += known.took_s[test]
        if took_s <= budget_s:
            affordable.append(test)
    tree = trees.get()
    try:
        for part in _parts(affordable, known):
            limit_s = _START_S + 10 * sum(known.took_s[test] for test in part)
            ran = tree.run([mutation], part, ("-x",), limit_s)
            if ran.code not in (0, 5):
                result.killer = ran.failed[0] if ran.failed else f"{ran.began} (time limit)"
                break
    finally:
        trees.put(tree)
    outcome = result.killer or f"passed {len(affordable)} of {len(tests)} tests that execute it"
    print(f"{mutation.place} {mutation.what}: {outcome}", flush=True)
    return result


def _parts(tests: Sequence[str], known: Map) -> list[list[str]]:
    """A first part of some seconds, whose few files are soon collected, and the rest."""
    took_s, first = 0.0, 0
    while first < len(tests) and took_s < 5:
        took_s += known.took_s[tests[first]]
        first += 1
    return [part for part in (list(tests[:first]), list(tests[first:])) if part]


def together(survivors: list[Result], files: Sequence[str], tree: Tree) -> None:
    """Run these tests with all survivors at once, until none fails; find out whom each failed test kills."""
    blameless: set[str] = set()
    while survivors:
        print(f"{' '.join(files)} with {len(survivors)} mutations at once", flush=True)
        changes = _disjoint([result.mutation for result in survivors])
        failed = tree.run(changes, [], ("-n", str(_PROCESSES)), 7200, files).failed
        suspected = [test for test in failed if test not in blameless]
        for test in suspected:
            if tree.run([], [test], (), 1200).code != 0:
                print(f"fails without a mutation: {test}", flush=True)
                continue
            for result in survivors:
                if not result.killer and tree.run([result.mutation], [test], (), 1200).code != 0:
                    result.killer = test
                    print(f"{result.mutation.place} {result.mutation.what}: {test}", flush=True)
        blameless.update(suspected)
        left = [result for result in survivors if not result.killer]
        if len(left) == len(survivors):
            return
        survivors = left


def _disjoint(changes: Sequence[Mutation]) -> list[Mutation]:
    """Those that can be applied together; one that overlaps an earlier one is left out."""
    kept: list[Mutation] = []
    for one in changes:
        if all(one.path != other.path or one.end <= other.start or other.end <= one.start for other in kept):
            kept.append(one)
    return kept


def table(results: Sequence[Result]) -> str:
    """A row for each mutation: the place, the change, what killed it."""
    rows = [
        f"| {result.mutation.place} | `{result.mutation.what}` | {result.killer or '**survived**'} |"
        for result in sorted(results, key=lambda result: (result.mutation.path, result.mutation.line))
    ]
    return "\n".join(["| place | mutation | killed by |", "| --- | --- | --- |", *rows])


def main(arguments: list[str] | None = None) -> int:
    """Mutate, and print the table. Exit code 1: a mutation survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", nargs="+", default=FOLDERS, help="folders of the crawler that are mutated")
    parser.add_argument("--map", type=Path, default=ROOT / "build" / "mutation-map.json")
    parser.add_argument("--mapped", nargs="+", default=QUICK, help="tests that a mutation alone must pass")
    parser.add_argument("--alone-s", type=float, default=_ALONE_S, help="at most so many seconds of them")
    parser.add_argument("--rest", nargs="*", default=["tests"], help="tests that the survivors together must pass")
    parser.add_argument("--at", metavar="FILE[:LINE]", help="mutate only this file or line, at all its places")
    options = parser.parse_args(arguments)
    every = [found for path in modules(ROOT, options.folder) for found in mutations(path, (ROOT / path).read_bytes())]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would tests
    if options.at is not None:
        every = [each for each in every if options.at in (each.path, each.place)]
        options.count = len(every)
    random.Random(options.seed).shuffle(every)
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        scratch = Path(folder)
        with Types(scratch / "types") as types:
            drawn = list(islice(filter(types.accept, every), options.count))
        print(f"seed {options.seed}: {len(drawn)} of {len(every)} possible mutations", flush=True)
        known = load_map(options.map, options.mapped, scratch)
        trees: SimpleQueue[Tree] = SimpleQueue()
        for n in range(_PROCESSES):
            trees.put(Tree(scratch / f"tree{n}"))
        with ThreadPoolExecutor(_PROCESSES) as pool:
            results = list(pool.map(lambda mutation: alone(mutation, known, trees, options.alone_s), drawn))
        if options.rest:
            together([result for result in results if not result.killer], options.rest, trees.get())
    print(table(results))
    survived = sum(not result.killer for result in results)
    print(f"{len(results)} mutations of seed {options.seed}, {survived} survived")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
