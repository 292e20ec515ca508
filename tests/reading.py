"""Reads pages and texts in the process of the test: a child process would not keep virtual time, and takes longer."""

from __future__ import annotations

import asyncio

from crawler.engine.messages import pack_answer
from crawler.engine.page_messages import MAX_CPU_S, unpack_answer
from crawler.engine.parser_messages import pack_question, unpack_question
from crawler.engine.parser_pool import ReadingOptions, Stage, _Document, _Parser, question_about
from crawler.engine.parser_process import answer_to
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.robots_reading import unpack_rules
from crawler.engine.sitemap_messages import SitemapFacts, question_about_sitemap, unpack_sitemap
from crawler.engine.text_messages import ContentQuestion, TextQuestion, unpack_content, unpack_text
from crawler.errors import fault
from crawler.model import Fetched, PageFacts, Reading
from crawler.page.headers import HTML_TYPES
from crawler.page.texts import Content, MainText
from crawler.robots.readings import SiteRules


class ReaderInProcess:
    """A page reader as the engine wants it. Questions and answers pass through the messages of the parser process."""

    def __init__(self, options: ReadingOptions | None = None) -> None:
        self._options = options or ReadingOptions("", Reading.STRICT)

    def has_room(self, domain: str) -> bool:
        return True

    async def room(self, domain: str) -> None:
        pass

    async def read(self, document: Fetched, *, is_alone: bool = False, shingles: bool = False) -> PageFacts:
        about = question_about(document, self._options, shingles=shingles)
        question = unpack_question(*pack_question(about, MAX_CPU_S))
        facts = unpack_answer(answer_to(question))
        assert isinstance(facts, PageFacts)
        return facts

    async def read_sitemap(self, document: Fetched, *, is_alone: bool = False) -> SitemapFacts:
        about = question_about_sitemap(document, is_html=document.content_type in HTML_TYPES)
        facts = unpack_sitemap(answer_to(unpack_question(*pack_question(about, MAX_CPU_S))))
        assert isinstance(facts, SitemapFacts)
        return facts

    async def read_robots(self, question: RobotsQuestion) -> SiteRules:
        rules = unpack_rules(answer_to(unpack_question(*pack_question(question, MAX_CPU_S))))
        assert isinstance(rules, SiteRules)
        return rules


class ParserInProcess(_Parser):
    """Takes the place of a child process of a pool, and reads in the process of the test: starting a child takes 30 ms.

    Nothing ends it, confines it or limits its time.
    """

    async def start(self) -> None:
        self.stage = Stage.READY
        self.ready.set_result("nothing")

    def is_cut_off(self) -> bool:
        return False  # there is no pipe

    def send(self, document: _Document) -> None:
        self.documents.append(document)
        self._octets += document.octets
        document.sent_at = asyncio.get_running_loop().time()
        asyncio.get_running_loop().call_soon(self._answer, document)

    def kill(self) -> None:
        self.stage = Stage.ENDED
        if not self.ended.done():
            self.ended.set_result(None)

    def _answer(self, document: _Document) -> None:
        if self.ended.done():
            return
        question = unpack_question(*pack_question(document.question, document.max_cpu_s))
        try:
            message = answer_to(question)
        except Exception as error:
            message = pack_answer(fault(error))
        self._note_answer(message)
        self._on_answers()


class TextsInProcess:
    """A reader of texts. ``sites`` has the site of each document that was read."""

    def __init__(self) -> None:
        self.sites: list[str] = []

    async def main_text(self, site: str, body: bytes, charset: str | None, content_type: str) -> MainText:
        self.sites.append(site)
        question = TextQuestion(1.0, site, charset, content_type, body)
        text = unpack_text(answer_to(unpack_question(*pack_question(question, 1.0))))
        assert isinstance(text, MainText)
        return text

    async def content(self, site: str, body: bytes, charset: str | None, content_type: str) -> Content | None:
        question = ContentQuestion(1.0, site, charset, content_type, body)
        content = unpack_content(answer_to(unpack_question(*pack_question(question, 1.0))))
        assert not isinstance(content, str)
        return content
