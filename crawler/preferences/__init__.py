"""Preferences about use: what the owner of a page says about training, search and other uses of it. Pure.

A site states preferences in several schemes: ``Content-Usage`` (draft-ietf-aipref-vocab and -attach), Content Signals,
TDMRep, RSL, and the robots terms ``noai`` and ``noimageai``. :mod:`crawler.preferences.schemes` has one parser for each
scheme; each returns :class:`crawler.model.Preference` records with one vocabulary of categories.
:mod:`crawler.preferences.purposes` combines all preferences of a page by one rule, for the purposes that a crawl
declares. :mod:`crawler.robots.preferences` finds the lines of robots.txt that apply to a URL, and
:mod:`crawler.page.preferences` the fields and tags of an answer; ``purposes`` bounds both.
:mod:`crawler.preferences.robots_tag` reads ``Robots-Tag``, which both may contain.

Rules: ``docs/protocols.md``, section 7.
"""
