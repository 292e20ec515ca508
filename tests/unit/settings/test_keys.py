"""An error that refers to a setting names one that exists, whatever the front end calls it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.errors import Action, Argument, Setting, UsageError
from crawler.settings.keys import KEYS, terminal_name

SOURCES = sorted((Path(__file__).parents[3] / "crawler").rglob("*.py"))


def referred(tree: ast.AST) -> Iterator[str]:
    """The keys that the calls of :class:`Setting` and of errors name."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "id", "")
            named = call.args[:1] if name == "Setting" else []
            named += [word.value for word in call.keywords if word.arg == "key" and name.endswith("Error")]
            yield from (node.value for node in named if isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_each_reference_names_a_setting() -> None:
    found = {key for path in SOURCES for key in referred(ast.parse(path.read_text("utf-8")))}
    assert len(found) > 8
    assert found - set(KEYS) == set()


@pytest.mark.parametrize(
    ("error", "python", "terminal"),
    [
        (
            UsageError("too many", key="limits.max_pages", value=5),
            "limits.max_pages = 5: too many",
            "--max-pages 5: too many",
        ),
        (
            UsageError("lower ", Setting("politeness.slow_factor")),
            "lower politeness.slow_factor",
            "lower politeness.slow_factor",
        ),
        (UsageError(Argument("base_url", "x"), ": no"), "base_url = 'x': no", "--base-url x: no"),
        (UsageError("do ", Action("crawler index", "crawl.index()")), "do crawl.index()", "do `crawler index`"),
        (UsageError("100 % {}"), "100 % {}", "100 % {}"),
    ],
)
def test_each_front_end_has_its_own_names(error: UsageError, python: str, terminal: str) -> None:
    assert (str(error), error.message(terminal_name)) == (python, terminal)
