"""Checks a crawl against the rules: replays the log with the robots.txt versions and paces in force (docs/audit.md).

``log_reader`` reads ``records``; ``replay``, ``restrictions``, ``robots_history``, ``walls`` and ``use`` judge them by
the ``checks``, and ``run_audit`` puts the result together. ``totals`` (with the table of sites) and ``study`` are facts
beside it. ``rendering`` prints the result, ``document`` writes it as Markdown, with ``run_settings`` in words.
"""
