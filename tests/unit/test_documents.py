"""The documents refer only to files and headings that exist, and the README stays short."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.listing import require_none

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


PAGES = tracked("*.md")


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _CODE_BLOCK.sub("", page.read_text()), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    """The relative links of a page that lead to no file or to no heading."""
    for link in _LINK.findall(_CODE_BLOCK.sub("", page.read_text())):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def test_relative_links_lead_to_a_file_and_a_heading() -> None:
    assert len(PAGES) > 20
    require_none(f"{page}: {link}" for page in PAGES for link in broken_links(page))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# A heading, with a comma\n")
    links = [
        "other.md",
        "other.md#a-heading-with-a-comma",
        "#own",
        "https://a.test/",
        "none.md",
        "other.md#none",
        "#none",
    ]
    page.write_text("## Own\n" + " ".join(f"[x]({link})" for link in links) + "\n```\n[x](code.md)\n```\n")
    assert list(broken_links(page)) == ["none.md", "other.md#none", "#none"]


def test_code_and_documents_mention_only_documents_that_exist() -> None:
    files = tracked("*.md", "*.py", "*.toml", "*.sql", "*.yml", ".ci/run")
    mentioned = [(file, name) for file in files for name in _MENTION.findall(file.read_text())]
    require_none(f"{file}: {name}" for file, name in mentioned if not (ROOT / name).exists())


def test_documents_mention_only_modules_that_exist() -> None:
    mentioned = [(page, name) for page in PAGES for name in _MODULE.findall(page.read_text())]
    assert len(mentioned) > 20
    require_none(f"{page}: {name}" for page, name in mentioned if not (ROOT / name).exists())


def test_the_index_of_the_documentation_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = [path for path in tracked("docs/*.md") if path.parent == ROOT / "docs" and path.name != "README.md"]
    assert [path.name for path in pages if f"({path.name})" not in index] == []


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
