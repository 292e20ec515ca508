"""The texts of stored pages: read in parser processes, within bounds, and kept beside the bodies.

``reader`` reads, ``kept`` reads what is not kept yet and keeps it. The search index, the excerpts, near-duplicates and
exports have their texts from here, so no other process parses a page.
"""
