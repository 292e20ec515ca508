"""The changes that ``tests.mutate`` makes, and the blocks by which it finds the tests of a change."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.mutate import mutations, note_blocks

SOURCE = b'''"""A docstring."""
from __future__ import annotations
LIMIT = 3

def is_near(depth: int, known: list[int]) -> bool:
    """Whether it is."""
    if depth < LIMIT and known:
        known.append(depth)
        return True
    return not known
'''


def test_each_change_is_one_place_and_one_other_meaning() -> None:
    found = mutations("m.py", SOURCE)
    assert [(each.line, each.blocks, each.what) for each in found] == [
        (3, (7,), "3 → 4"),
        (3, (7,), "3 → 2"),
        (7, (7,), "depth < LIMIT and known → True"),
        (7, (7,), "depth < LIMIT and known → False"),
        (7, (7,), "depth < LIMIT and known → known"),
        (7, (7,), "depth < LIMIT and known → depth < LIMIT"),
        (7, (7,), "depth < LIMIT → depth <= LIMIT"),
        (8, (8,), "known.append(depth) → pass"),
        (9, (8,), "True → False"),
        (10, (7,), "return not known → return True"),
        (10, (7,), "return not known → return False"),
    ]
    for each in found:
        compile(each.applied(SOURCE), "m.py", "exec")
        assert each.applied(SOURCE) != SOURCE


def test_a_copy_notes_the_blocks_that_it_executes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "crawler" / "robots"
    folder.mkdir(parents=True)
    (folder / "m.py").write_bytes(SOURCE)
    assert note_blocks(tmp_path, ["robots"]) == ["crawler/robots/m.py:7", "crawler/robots/m.py:8"]
    shared = tmp_path / "shared"
    shared.write_bytes(bytes(2))
    monkeypatch.setenv("MUTATE_SHARED", str(shared))
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, object] = {}
    try:
        exec(compile((folder / "m.py").read_bytes(), "m.py", "exec"), names)
    finally:
        sys.modules.pop("executed_blocks", None)
    is_near = names["is_near"]
    assert callable(is_near)
    assert (is_near(3, [0]), shared.read_bytes()) == (False, bytes([1, 0]))
    assert (is_near(2, [0]), shared.read_bytes()) == (True, bytes([1, 1]))
