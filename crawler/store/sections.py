"""The classes of a store, for its clients: the store, and a class for each section.

A section is what one kind of client needs: the operator's orders, bodies, revisits, samples, results that are computed
from the crawl, deleting content, and registrations with servers of the Remote Update Protocol. Both databases have
the same classes; :mod:`crawler.store.open` opens a store. Only the task of a round knows that its store is a file.
"""

from __future__ import annotations

from crawler.store.sql.bodies import Bodies
from crawler.store.sql.control import Control
from crawler.store.sql.maintenance import Maintenance
from crawler.store.sql.results import Results
from crawler.store.sql.revisits import Revisits
from crawler.store.sql.samples import Samples
from crawler.store.sql.store import Store
from crawler.store.sql.subscriptions import Subscriptions
from crawler.store.sqlite.store import SqliteStore

__all__ = [
    "Bodies",
    "Control",
    "Maintenance",
    "Results",
    "Revisits",
    "Samples",
    "SqliteStore",
    "Store",
    "Subscriptions",
]
