"""The dashboard: shows a running crawl in a browser and to Prometheus, from a process of its own.

It only reads the store, and gives orders to the crawl as ``crawler control`` does (:mod:`crawler.frontier.operator`).
"""
