"""What to fetch next, when, and what follows from an answer. Pure rules.

The life of one URL: an *offer* (:mod:`~crawler.frontier.offers`) is admitted by the *scope*
(:mod:`~crawler.frontier.scope`), waits in the frontier, is *decided* on when its turn has come
(:func:`~crawler.frontier.decide.before_fetch`), is fetched at its politeness group's *pace*
(:mod:`~crawler.frontier.politeness`), and ends by an *outcome*
(:func:`~crawler.frontier.decide.after_fetch`), which the store commits at once or not at all.
"""
