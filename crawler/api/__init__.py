"""The Python API: ``crawler.open``, then ``crawl.run``. README.md has an example, and docs/python.md describes it.

``open_crawl`` has the calls, and ``arguments`` checks what they are given.
"""

from crawler.api.open_crawl import OpenCrawl, open

__all__ = ["OpenCrawl", "open"]
