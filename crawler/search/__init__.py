"""Search in what was crawled (docs/search.md).

Words: ``tokenizer``, ``stems``. The index: ``build_index`` writes ``index_file``, with the ``document`` of each page,
by the plan of ``deduplicate``; ``refresh`` brings it and what it is made of up to date. A search: ``query`` reads the
words, ``vocabulary`` says what the index knows of them, ``results`` finds the pages, ``names`` compares their titles
and paths, ``excerpt`` shows the matches. Its faces: ``rendering`` on the terminal; ``page_view`` and ``page_server``
for browsers.
"""
