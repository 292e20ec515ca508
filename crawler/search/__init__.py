"""Search in what was crawled (docs/search.md).

Words: ``tokenizer``, ``signs``, ``stems``, ``forms``, ``prefixes``. The index: ``build_index`` writes it through
``index_backend``, which is ``sqlite_index`` or ``postgres_index``. A search: ``query`` reads the words, ``results``
finds the pages, ``deduplicate`` folds near-duplicates, ``excerpt`` and ``anchors`` show the matches, ``spelling``
corrects words. Its faces: ``rendering`` on the terminal; ``page_view`` and ``page_server`` for browsers.
"""
