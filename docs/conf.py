"""Builds ``docs/`` as a site with Sphinx: ``sphinx-build -W docs site`` (extra ``docs``). The pages stay as they are.

The pages are written for GitHub: plain Markdown with relative links. What a site needs beside them is here: the order
of the pages, and the address of files that are no pages.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

from crawler.version import VERSION

HERE = Path(__file__).parent
SOURCE = "https://polite-crawler.example/source"  # reserved (RFC 2606), as in pyproject.toml

project, release, root_doc = "Polite crawler", VERSION, "README"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Polite crawler"
html_static_path: list[str] = []
exclude_patterns = ["images/*.py"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]

#: The pages by section, in the order of the navigation. A page that is in none comes last, under "More".
SECTIONS = {
    "Begin": ["install", "examples/tutorial", "troubleshooting"],
    "Examples": ["examples/search", "examples/data", "examples/fields", "examples/sample", "examples/study"],
    "Guides": [
        "running",
        "seeds",
        "revisits",
        "schedule",
        "backups",
        "dashboard",
        "scale",
        "search",
        "duplicates",
        "mcp",
        "export",
        "python",
        "samples",
        "appendix",
        "audit",
        "identity",
        "updates",
        "rup-server",
    ],
    "Reference": ["cli", "settings", "store", "views", "reasons", "api", "glossary"],
    "Explanation": ["protocols", "sample-statistics", "sample-coverage"],
    "Development": [
        "development/README",
        "development/performance",
        "development/reliability",
        "development/workers",
        "decisions/README",
    ],
}
_OUTSIDE = re.compile(r"\]\(((?:\.\./)+[^)#]+)(#[^)]*)?\)")


def _for_site(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to the first page, and point links that leave ``docs/`` to the source."""
    folder = (HERE / f"{page}.md").parent

    def to_source(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        if target.is_relative_to(HERE):
            return link[0]
        return f"]({SOURCE}/{target.relative_to(HERE.parent).as_posix()}{link[2] or ''})"

    source[0] = _OUTSIDE.sub(to_source, source[0])
    if page == root_doc:
        pages = (path.relative_to(HERE).with_suffix("").as_posix() for path in HERE.glob("**/*.md"))
        placed = {root_doc, *(name for names in SECTIONS.values() for name in names)}
        others = sorted(name for name in pages if name not in placed and not name.startswith("decisions/"))
        sections = SECTIONS | ({"More": others} if others else {})
        source[0] += "".join(_toctree(caption, names) for caption, names in sections.items())
    elif page == "decisions/README":
        names = sorted(path.stem for path in (HERE / "decisions").glob("[0-9]*.md"))
        source[0] += _toctree("", names)


def _toctree(caption: str, names: list[str]) -> str:
    head = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + head + "\n" + "\n".join(names) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _for_site)
