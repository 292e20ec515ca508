"""Reads a robots.txt for a command that explains it, with the result and the limits of a crawl."""

from __future__ import annotations

from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.robots_reading import read_robots
from crawler.robots.readings import SiteRules
from crawler.robots.text import SMALL_BYTES


def read_robots_alone(question: RobotsQuestion) -> SiteRules:
    """The rules of a robots.txt, read as a crawl reads it: a large file in a parser process, within its limits.

    It blocks. Raises as :meth:`crawler.engine.parser_pool.ParserPool.read`.
    """
    if len(question.body) <= SMALL_BYTES:
        return read_robots(question)
    from crawler.engine.parser_pool import BlockingReader  # a small file needs no process

    with BlockingReader() as reader:
        return reader.read_robots(question)
