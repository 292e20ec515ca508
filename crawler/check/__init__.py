"""Checks without network: what a robots.txt allows, and what an HTML page says of itself.

``commands`` has both. The cores are :mod:`crawler.robots.check` and :mod:`crawler.page.check`.
"""
