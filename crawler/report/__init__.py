"""``crawler report``: a crawl as one HTML file that loads nothing and runs no text of a crawled site.

:mod:`~crawler.report.gather` reads the store into plain data, ``charts`` lays it out, ``formats`` writes numbers,
``rendering`` renders all by the templates in ``templates/``, and ``write`` writes the file. Rendering needs the extra
``report``.
"""
