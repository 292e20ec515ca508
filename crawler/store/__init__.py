"""The store is the truth: frontier, pages, links, robots versions and request log in one database.

What is being fetched is still queued here until its one commit lands; starting again is resuming.
:mod:`~crawler.store.sections` names the classes for the clients, :mod:`~crawler.store.rows` what goes in and comes out.
:mod:`crawler.store.sql` does what is the same on both databases, :mod:`crawler.store.sqlite` and
:mod:`crawler.store.postgres` the rest. Statements stand in files (:mod:`~crawler.store.statements`).
"""
