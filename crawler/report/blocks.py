"""What the sections are built of: cards, and tables that sort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crawler.audit.evidence import many
from crawler.report.charts import bar, percent
from crawler.report.markup import Child, Node, el, short


@dataclass(frozen=True, slots=True)
class Cell:
    """``value`` is what the column sorts by; ``kind`` a class of the style sheet, ``n`` for figures."""

    shown: Node | str
    value: str | float
    kind: str = ""


def plain(text: str) -> Cell:
    return Cell(text, text)


def number(value: float | None, show: Callable[[float], str] = "{:,}".format) -> Cell:
    """A figure; nothing is shown for ``None``, and a grey dot for 0."""
    if value is None:
        return Cell("", -1, "n")
    return Cell(show(value) if value else el("span", "·", class_="soft"), value, "n")


def url(text: str) -> Cell:
    """An address as text: nothing that was crawled can be clicked."""
    return Cell(el("span", short(text), class_="url"), text, "address")


def barred(share: float, colour: str) -> Cell:
    return Cell(bar(share, colour), share, "barred")


def badge(text: str, tone: str, value: str | float | None = None) -> Cell:
    kind = "n" if isinstance(value, int | float) else ""
    return Cell(el("span", text, class_=f"badge {tone}"), text if value is None else value, kind)


def without_empty(
    heads: Sequence[str], rows: Sequence[Sequence[Cell]]
) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
    """The columns in which some row has something."""
    kept = [n for n in range(len(heads)) if any(row[n].value not in (0, -1, "") for row in rows)]
    return [heads[n] for n in kept], [[row[n] for n in kept] for row in rows]


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, long: bool = False) -> Node:
    """A table in a frame of its own, in which it can be moved where the page is narrower."""
    kinds = [cell.kind for cell in rows[0]] if rows else [""] * len(heads)
    head = [
        el("th", el("button", name, type="button") if name else el("span"), class_=kind, scope="col")
        for name, kind in zip(heads, kinds, strict=True)
    ]
    body = [el("tr", *(el("td", cell.shown, class_=cell.kind, data_v=cell.value) for cell in row)) for row in rows]
    whole = el("table", el("thead", el("tr", *head)), el("tbody", *body), class_="sort")
    return el("div", whole, class_="scroll long" if long else "scroll")


def card(*children: Child, whole: bool = False) -> Node:
    return el("div", *children, class_="card whole" if whole else "card")


def cards(*children: Child) -> Node:
    return el("div", *children, class_="cards")


def three(*children: Child) -> Node:
    return el("div", *children, class_="cards three")


def counted(title: str, head: str, rows: Sequence[tuple[str, int]], colour: str) -> Node:
    """A card of bars, one for each of what was counted."""
    most = max((n for _, n in rows), default=1)
    total = sum(n for _, n in rows) or 1
    made = [
        [plain(short(what, 60)), barred(n / most, colour), number(n), number(n / total, percent)] for what, n in rows
    ]
    return card(el("h3", title), table((head, "", "how many", "share"), made))


def left_out_note(there: int, shown: int, noun: str) -> Node | None:
    if there <= shown:
        return None
    others = "" if noun == "run" else f" `crawler export csv {noun}s.csv --table {noun}s` has them all."
    return el("p", f"{shown:,} of {many(there, noun)} are shown.{others}", class_="note")
