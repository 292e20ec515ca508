"""Robots.txt: parsing, the three readings, the response, mirrors and mobile agents. Every module here is pure.

* **One parser, several readers.** :func:`~crawler.robots.text.parse` turns any bytes into a neutral model and never
  fails. :func:`~crawler.robots.readings.read` interprets the model for one agent and one site in one of three
  readings: the 1996 draft, RFC 9309, or strict, which allows only URLs that both allow.
* **A verdict carries its evidence**: the line of the file that decided. The audit uses it to justify each request.
* **The response is interpreted apart from the file.** :func:`~crawler.robots.response.interpret` turns the answer to a
  request for /robots.txt (200, 404, 503, no answer) into the copy in force or into the next hop of a redirect.
* **Strict also reads what an owner clearly meant** (:mod:`crawler.robots.meant`): such lines only close.
* **Work is bounded.** The parser counts octets, matching never backtracks, and a file with too many rules for a
  path closes that path.

Modules, lowest first: ``fields`` (names) → ``text`` (lines) → ``paths`` (one pattern) → ``matching`` (an index of
patterns), ``records`` (the lines for one agent), ``hosts``, ``meant`` (mended lines) → ``rules`` (rules in order of
precedence), ``mobile_agents`` → ``readings`` → ``first_match`` (paths that only the order of lines closes).
``http_seconds`` → ``response`` and ``mirrors`` stand beside them. ``check`` answers one case without network.
``doubts`` finds lines whose effect may differ from their author's intention.
"""
