"""Reads an HTML page: directives, canonical URL, texts and links. Pure functions over bytes and headers.

The modules, from the bottom:

* ``charset`` finds the encoding of a page and converts it to UTF-8.
* ``directives`` interprets META ROBOTS and X-Robots-Tag.
* ``targets`` resolves the links of a page, once per distinct target.
* ``headers`` reads what the response headers alone say.
* ``links`` and ``tags`` collect what the tags of the parsed tree say.
* ``html`` combines them: :func:`~crawler.page.html.read_page` returns all that is stored or decided about a page.
* ``check`` answers the cases of ``crawler page check``.

The parser can take minutes and gigabytes for a hostile page and cannot be interrupted. The crawler therefore calls
:func:`~crawler.page.html.read_page` only in a child process (:mod:`crawler.engine.parser_process`). ``links``,
``tags`` and ``html`` load the parser; the crawler process imports the other modules only.
"""
