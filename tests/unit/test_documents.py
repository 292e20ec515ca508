"""The documents refer only to files and headings that exist, and the README stays short."""

from __future__ import annotations

import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from crawler.export.view_columns import VIEWS

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\[[^\]\n]*\]\((?!https?:|mailto:)([^)\s]+)\)")
_MENTION = re.compile(r"(?<![\w/.-])((?:docs|config)/[\w./-]+\.(?:md|toml|svg|png))\b")
_MODULE = re.compile(r"(?<![\w/.-])(crawler/[\w/]+\.(?:py|sql|html|css|js))\b")
_CODE_BLOCK = re.compile(r"^```.*?^```", re.M | re.S)


def tracked(*patterns: str) -> list[Path]:
    """The repository's files that match one of ``patterns`` and exist, new files included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [path for name in sorted(set(names)) if name and (path := ROOT / name).is_file()]


def named(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


PAGES = tracked("*.md")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _CODE_BLOCK.sub("", page.read_text()), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_relative_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in _LINK.findall(_CODE_BLOCK.sub("", page.read_text())):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_code_and_documents_mention_only_documents_that_exist() -> None:
    files = tracked("*.md", "*.py", "*.toml", "*.sql", "*.yml", ".ci/run")
    missing = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in files
        for name in _MENTION.findall(file.read_text())
        if not (ROOT / name).exists()
    }
    assert missing == set()


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_documents_mention_only_modules_that_exist(page: Path) -> None:
    assert [name for name in _MODULE.findall(page.read_text()) if not (ROOT / name).exists()] == []


def test_the_index_of_the_documentation_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = [path for path in tracked("docs/*.md") if path.parent == ROOT / "docs" and path.name != "README.md"]
    assert [path.name for path in pages if f"({path.name})" not in index] == []


def test_the_page_on_the_store_lists_every_view_with_its_columns() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (`.*`) \|$", (ROOT / "docs" / "store.md").read_text(), flags=re.M)
    listed = {
        view: {name for part in re.findall(r"`([^`]+)`", text) for name in part.split(", ")} for view, text in rows
    }
    assert listed == {view: set(columns) for view, columns in VIEWS.items()}


def test_the_architecture_names_only_code_that_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {path.stem for path in (ROOT / "crawler").iterdir()}
    named = [name.split(".") for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", text)]
    assert [
        ".".join(parts) for parts in named if parts[0] in packages and parts[-1] != "py" and not _exists(parts)
    ] == []
    files = re.findall(r"`((?:\w+/)+\w+\.(?:py|sql))`", text)
    assert [name for name in files if not (ROOT / "crawler" / name).exists() and not (ROOT / name).exists()] == []


def _exists(parts: list[str]) -> bool:
    """Whether ``crawler`` contains this dotted name of a module or of an attribute."""
    found: object = import_module("crawler")
    for count, name in enumerate(parts, 1):
        if not hasattr(found, name):
            try:
                import_module(".".join(["crawler", *parts[:count]]))
            except ModuleNotFoundError:
                return False
        found = getattr(found, name)
    return True


@pytest.mark.parametrize(("name", "most"), [("README.md", 120), ("ARCHITECTURE.md", 200)])
def test_the_entrance_is_short(name: str, most: int) -> None:
    assert (ROOT / name).read_text().count("\n") <= most
