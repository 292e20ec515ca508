"""The Remote Update Protocol (RUP, Internet-Draft of January 1998): a site tells robots what changed.

``protocol`` has the rules, both sides of them; ``mail`` carries reports; ``robot`` is the side of the crawl, and
``server`` that of a site. docs/updates.md and docs/rup-server.md describe the commands.
"""
