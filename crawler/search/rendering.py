"""The results of a search on the terminal; :mod:`crawler.search.page_view` is the page for browsers."""

from __future__ import annotations

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from crawler.cli.console import PrintableConsole
from crawler.formatting import many
from crawler.search.excerpt import Marked
from crawler.search.results import SearchResult


def render(found: SearchResult, console: PrintableConsole, *, one_cluster: bool) -> None:
    """Print results for people: title, address and excerpt, with the matches in bold."""
    console.print(f"{'more than ' if found.is_more else ''}{many(found.total, 'page')} with all the words")
    if found.excluded:
        console.print(f"without pages that have {' or '.join(found.excluded)}")
    if found.as_typed is not None:
        console.print(f"Results for {found.suggestion} (to search as typed: {found.as_typed})")
    elif found.suggestion is not None:
        console.print(f"Did you mean: {found.suggestion}")
    for position, hit in enumerate(found.hits, 1):
        console.print()
        console.print(Text.assemble(f"{position}. ", _bold(hit.title) if hit.title.text else Text(hit.url)))
        lines = [Text(hit.url, style="green", overflow="fold"), _bold(hit.excerpt)]
        if hit.anchor is not None:
            lines.insert(1, Text.assemble("a link to it says “", _bold(hit.anchor), "”"))
        if not hit.all_words:
            lines.append(Text("has some of the words", style="dim"))
        if hit.similar and not one_cluster:
            lines.append(Text(f"and {many(hit.similar, 'similar page')} (--similar-to shows them)", style="dim"))
        console.print(Padding(Group(*lines), (0, 0, 0, 3)))


def _bold(marked: Marked) -> Text:
    text = Text(marked.text)
    for start, end in marked.marks:
        text.stylize("bold", start, end)
    return text
