"""The care of a store (docs/store.md): take content out of it, copy it, let a role read it.

``forgetting`` selects what is to be forgotten and deletes it. The rest is carried out by the store itself, and
``commands`` calls it.
"""
