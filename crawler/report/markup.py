"""Builds HTML as a tree of elements: texts and attributes are escaped when the tree is written, and nowhere by hand.

What was crawled is anybody's, so no text can be forgotten: there is no way to put markup into the tree but as elements.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

Node = ET.Element
Child = Node | str | None

#: Controls, lone surrogates, and what turns the direction of the text after it.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def el(tag: str, *children: Child, **attributes: str | float) -> Node:
    """An element. ``class_`` is the attribute ``class``, ``data_v`` is ``data-v``; a child ``None`` is nothing."""
    node = ET.Element(tag, {_name(key): _fit(f"{value}") for key, value in attributes.items()})
    for child in children:
        if isinstance(child, str):
            _append_text(node, _fit(child))
        elif child is not None:
            node.append(child)
    return node


def raw(tag: str, text: str) -> Node:
    """A ``style`` or ``script`` element, whose text HTML takes as it is: only for texts of ours."""
    node = ET.Element(tag)
    node.text = text
    return node


def short(text: str, most: int = 160) -> str:
    """A text of ``most`` characters at most: the beginning and the end of a longer one."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-most // 3 :]}"


def written(root: Node) -> bytes:
    """The document, in UTF-8."""
    return f"<!doctype html>\n{ET.tostring(root, encoding='unicode', method='html')}\n".encode()


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)


def _append_text(node: Node, text: str) -> None:
    if len(node):
        node[-1].tail = (node[-1].tail or "") + text
    else:
        node.text = (node.text or "") + text
