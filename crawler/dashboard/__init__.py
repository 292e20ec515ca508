"""The dashboard: shows a running crawl in a browser and to Prometheus, from a process of its own.

It only reads the store, and gives orders to the crawl as ``crawler control`` does (:mod:`crawler.frontier.operator`).
``snapshot`` reads all figures by ``cached_figures``; ``event_stream`` sends them to the viewers, and ``metrics`` writes
them for Prometheus. ``server`` has the pages, behind ``access``.
"""
