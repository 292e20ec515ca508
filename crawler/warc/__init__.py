"""WARC files: how a record is written (``records``), and the recorder of a crawl's requests (``recorder``).

``exchange`` makes the records of one request and its answer, which ``crawler.export.warc`` rebuilds from the store.
"""
