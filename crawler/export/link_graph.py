"""The link graph: GraphML, and a list of edges."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from crawler.export.job import Job

# The characters that an XML document may contain, even escaped (XML 1.0, 2.2).
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="url" for="node" attr.name="url" attr.type="string"/>
<key id="title" for="node" attr.name="title" attr.type="string"/>
<key id="status" for="node" attr.name="status" attr.type="int"/>
<key id="rel" for="edge" attr.name="rel" attr.type="string"/>
<graph edgedefault="directed">
"""
_TAIL = "</graph>\n</graphml>\n"


async def write_graphml(job: Job) -> None:
    """The selected links, and the URLs at their ends with title and status if they were fetched.

    The id of a node is ``n`` and the number of the URL (``urls.url_id``). The progress counts nodes and edges.
    """
    file = job.open()
    file.write(_HEAD.encode())
    async for row in job.rows(job.sql("graph_nodes", titled=job.allows("p.url_id"))):
        title = _data("title", row.title) if job.not_shown(row) is None else ""
        data = _data("url", row.url) + title + _data("status", row.status)
        file.write(f'<node id="n{row.url_id}">{data}</node>\n'.encode())
    async for row in job.rows(job.sql("graph_edges")):
        ends = f'source="n{row.source_id}" target="n{row.target_id}"'
        file.write(f"<edge {ends}>{_data('rel', row.rel or None)}</edge>\n".encode())
    file.write(_TAIL.encode())


async def write_edges(job: Job) -> None:
    """One link a line: source and target URL, separated by a tab. Canonical URLs contain no blanks and no ``#``."""
    file = job.open()
    async for row in job.rows(job.sql("edges")):
        file.write(f"{row.source}\t{row.target}\n".encode())


def _data(key: str, value: str | int | None) -> str:
    if value is None:
        return ""
    text = escape(_NO_XML.sub("\ufffd", str(value)), {"\r": "&#13;"})
    return f'<data key="{key}">{text}</data>'
