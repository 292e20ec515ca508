"""The rules for what to fetch next, when to fetch it, and what follows from an answer. Pure.

The way of one URL:

1. A link, sitemap or redirect makes an *offer* (:mod:`~crawler.frontier.offers`).
2. The *scope* admits the offer (:mod:`~crawler.frontier.scope`), and the URL waits in the frontier.
3. When a worker has claimed the URL, :func:`~crawler.frontier.decide.before_fetch` *decides* whether to fetch it.
4. The crawler fetches it at the *pace* of its politeness group (:mod:`~crawler.frontier.politeness`).
5. :func:`~crawler.frontier.decide.after_fetch` makes an *outcome* of the answer, which the store commits as a whole.
"""
