"""Near-duplicates: pages whose main texts are nearly the same, in clusters (docs/duplicates.md).

``shingles`` is the pure core, ``texts`` signs the texts of pages, ``find`` makes the clusters.
"""
