"""The link graph: GraphML, and a list of edges."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from crawler.export.job import Job

# XML 1.0, 2.2: the characters that may stand in a document, be it escaped.
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
    """The links that are kept, and the URLs at their ends with title and status where they were fetched.

    A node's id is ``n`` and the URL's number (``urls.url_id``). Counted are nodes and edges.
    """
    file = job.open()
    file.write(_HEAD.encode())
    nodes = f"""
      SELECT u.url_id, u.url, (SELECT p.title FROM pages p WHERE p.url_id = u.url_id),
             (SELECT p.status FROM pages p WHERE p.url_id = u.url_id),
             (SELECT p.directives FROM pages p WHERE p.url_id = u.url_id)
      FROM urls u
      WHERE u.url_id IN (SELECT source_id FROM {job.kept} AS a UNION SELECT target_id FROM {job.kept} AS b)"""
    async for row in job.rows(nodes):
        number, url, title, status, _ = row
        shown = _data("title", title) if job.is_shown(row) else ""
        data = _data("url", url) + shown + _data("status", status)
        file.write(f'<node id="n{number}">{data}</node>\n'.encode())
    async for source, target, rel in job.rows(f"SELECT source_id, target_id, rel FROM {job.kept} AS kept"):
        file.write(f'<edge source="n{source}" target="n{target}">{_data("rel", rel or None)}</edge>\n'.encode())
    file.write(_TAIL.encode())


async def write_edges(job: Job) -> None:
    """A link a line: source and target URL with a tab between. URLs here hold no blanks, and no ``#``."""
    file = job.open()
    async for source, target in job.rows(f"SELECT source, target FROM {job.kept} AS kept"):
        file.write(f"{source}\t{target}\n".encode())


def _data(key: str, value: str | int | None) -> str:
    if value is None:
        return ""
    text = escape(_NO_XML.sub("\ufffd", str(value)), {"\r": "&#13;"})
    return f'<data key="{key}">{text}</data>'
