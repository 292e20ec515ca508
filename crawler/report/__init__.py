"""``crawler report``: a crawl as one HTML file that loads nothing and runs no text of a crawled site.

:mod:`~crawler.report.gather` reads the store into plain data (:mod:`~crawler.report.facts`);
:mod:`~crawler.report.rendering` renders the data with the templates in ``templates/``. Rendering needs the extra
``report``.
"""
