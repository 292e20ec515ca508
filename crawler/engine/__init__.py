"""The engine crawls. No other package waits for the pauses of sites.

Nouns:

* :class:`~crawler.engine.crawl.Crawl`: one run; it puts the parts together in one place.
* :class:`~crawler.engine.loop.CrawlLoop`: commits, claims, waits and concludes; two pure functions decide for it.
* :class:`~crawler.engine.claim_task.ClaimTask`: works on one claim, a politeness group with a batch of its URLs.
* :class:`~crawler.engine.outbox.Outbox`: the finished work that the next commit takes.
* :class:`~crawler.engine.workbench.Workbench`: decides when a request may be sent, and how many groups are claimed.
  :class:`~crawler.engine.gate.Gate` is its shell: every request passes it.
* :class:`~crawler.engine.lease.Lease`: the right to send requests, if other processes work on the same crawl.
* :class:`~crawler.engine.robots_cache.RobotsCache`: the robots copy in force of each site, renewed before its pages are
  requested, also behind redirects to other sites. :class:`~crawler.engine.rules_cache.RulesCache` has its rules in
  memory, and :class:`~crawler.engine.main_sites.MainSites` has the main sites that ``Host`` lines name.
* :class:`~crawler.engine.parser_pool.ParserPool`: reads pages in child processes.
* :class:`~crawler.engine.page_counter.PageCounter`: the pages that ``--max-pages`` leaves to this process.
* :class:`~crawler.engine.operator.OperatorListener`: carries out the orders of the operator.
* :class:`~crawler.engine.shutdown.Shutdown`: every reason to stop comes here.

A story: the loop commits, and the store gives it a claim. A claim task takes the claim's first URL, asks the robots
cache for the copy in force, and the rules whether the URL may be fetched. The gate waits for the group's pause and
sends the request. A parser process reads the page, the rules make an outcome of it, and the outbox takes the outcome.
The loop finds that a commit is due, and commits again.
"""
