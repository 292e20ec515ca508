"""A hostile web: one virtual host for each behaviour, beside healthy sites. ``python -m tests.hostile`` crawls it.

A *family* is a module with the tuple ``BEHAVIOURS``. ``catalogue`` joins the families, ``server`` serves them in a
process of its own, ``crawl`` runs the real command against them, and ``verdict`` judges the store and the server's log.
"""
