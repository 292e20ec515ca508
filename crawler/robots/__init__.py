"""What a site asks: robots.txt, its response, its mirrors, its servers for mobile agents. All of it is pure.

The ideas:

* **Parse once, read many.** :func:`~crawler.robots.text.parse` makes a neutral model of any bytes whatever and never
  fails. :func:`~crawler.robots.readings.read` interprets the model for one agent and one site, in one of three
  readings: the 1996 draft, RFC 9309, or strict, which allows what both allow.
* **A verdict carries its evidence**: the line of the file that decided, so that every request can be justified.
* **An answer is not a file.** :func:`~crawler.robots.response.interpret` turns what came back for /robots.txt, also
  404, 503 or nothing at all, into the copy in force, or into the next hop of a redirect.
* **Bounded.** The file is a stranger's: its octets are counted, no pattern makes matching backtrack, and where rules
  are too many to be compared, the answer is no.

From the bottom: ``text`` (lines) → ``paths`` (one pattern) → ``matching`` (many of them) · ``records`` (which lines are
for us) · ``hosts`` → ``rules`` (in order of precedence) · ``mobile_agents`` → ``readings`` (all of it together); beside
them ``http_dates`` → ``response``, ``mirrors``; on top ``check``, for trying it without network, and ``doubts``: which
lines may have been meant otherwise than any reading takes them.
"""

from crawler.robots.check import check_case
from crawler.robots.doubts import Doubt, Doubts, doubts_about
from crawler.robots.http_dates import http_date, retry_after_s
from crawler.robots.mirrors import Cycle, Main, main_of
from crawler.robots.mobile_agents import AgentServer
from crawler.robots.readings import SiteRules, read
from crawler.robots.records import product_token
from crawler.robots.response import Follow, RobotsSettings, freshness, interpret
from crawler.robots.rules import Verdict
from crawler.robots.text import Line, RobotsFile, parse

__all__ = [
    "AgentServer",
    "Cycle",
    "Doubt",
    "Doubts",
    "Follow",
    "Line",
    "Main",
    "RobotsFile",
    "RobotsSettings",
    "SiteRules",
    "Verdict",
    "check_case",
    "doubts_about",
    "freshness",
    "http_date",
    "interpret",
    "main_of",
    "parse",
    "product_token",
    "read",
    "retry_after_s",
]
