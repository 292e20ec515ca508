"""A crawl of many buckets over a dataset, in rounds (``docs/scale.md``).

* A **dataset** is a folder or a prefix in object storage. It has everything of the crawl, as objects.
* A **bucket** is a share of the crawl by registered domain, with a store of its own: a SQLite file as an object.
* A **round** is a time in which tasks crawl, from its plan to its manifest.
* A **task** crawls one bucket in one round. An object that is created exclusively claims it, so it happens once.
* A **manifest** says which tasks of a round count. It is created exclusively: a round happened or did not.
* A **runner** runs the tasks of a plan: processes of this machine, or Apache Spark.

``plan`` decides (who works on what, and what follows from a round), ``task`` crawls one bucket, ``worker`` runs the
tasks of one process, ``runners`` start workers, and ``driver`` goes from round to round. ``addresses`` sees to it that
one task asks an address, and ``asks`` to what a bucket needs of the sites of others. What is read and written is in
``crawler.dataset``.
"""
