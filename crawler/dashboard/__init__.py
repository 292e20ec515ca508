"""The dashboard: a crawl as it goes, in a browser and for Prometheus, in a process of its own beside it.

It reads the store like any reader, and asks things of the crawl as ``crawler control`` does
(:mod:`crawler.frontier.operator`).
"""
