"""Checks without network: what a robots.txt allows, and what an HTML page says of itself.

The cores are :mod:`crawler.robots.check` and :mod:`crawler.page.check`.
"""
