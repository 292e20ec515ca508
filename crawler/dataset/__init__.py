"""The dataset of a crawl in rounds (``docs/scale.md``): a folder, or a prefix in object storage.

``objects`` reads and writes objects, ``records`` names them and knows what is in them, ``tables`` writes the rows of a
task as Parquet, and ``views`` are the views of a store in DuckDB over Parquet, with the methods of a store that the
features need. What a feature does otherwise on a dataset is in its own room: ``of_dataset`` of ``inspect``, ``audit``
and ``sampling``.
"""
