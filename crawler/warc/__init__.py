"""WARC files: how a record is written (``records``), and the recorder of a crawl's requests (``recorder``).

``exchange`` makes the records of one request and its answer. ``crawler.export.warc`` makes those of stored pages.
"""
