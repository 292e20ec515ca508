"""The care of a store (docs/store.md): take content out of it, copy it, refresh what a search needs.

``forgetting`` selects what is to be forgotten and deletes it, ``refresh`` computes what is older than the crawl. The
rest is carried out by the store itself, and ``commands`` calls it.
"""
