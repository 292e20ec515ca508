"""Checks a crawl against the rules: replays the log with the robots.txt versions and paces in force (docs/audit.md).

``log_reader`` reads ``records``; ``replay``, ``restrictions``, ``robots_history`` and ``walls`` judge them by the
``checks``, and ``run_audit`` puts the result together. ``totals`` and ``study`` are facts beside it, ``evidence`` words
a violation. ``rendering`` prints the result, ``document`` writes it as Markdown, ``sites_file`` a table of sites.
"""
